package protocol

// Code is a stable error code. It implements error, so that a code can be the
// target of errors.Is.
type Code string

func (c Code) Error() string { return string(c) }

// Every code of protocol.md 18, in its groups, and those that only a client
// makes. Two families of codes carry a number and have no constant:
// provider_http_N and provider_connection_os_N.
const (

	// Framing and sessions.

	InvalidJSON                Code = "invalid_json"                   // unreadable line, unknown op or field, missing or ill-typed field
	InvalidRequestID           Code = "invalid_request_id"             // id is not a nonnegative integer or a string of ≤ 128 bytes
	InputLineLimitOrTruncation Code = "input_line_limit_or_truncation" // line too long or cut off; session ends
	ResponseSizeLimit          Code = "response_size_limit"            // the answer would not fit one line
	OutputClosed               Code = "output_closed"                  // stdio owner stopped reading
	BotSocketRefused           Code = "bot_socket_refused"             // not available on a bot's socket

	// Bots, forks, settings.

	InvalidName                     Code = "invalid_name"  // bot name, request id or step name breaks the name rule
	BotNotFound                     Code = "bot_not_found" // no such bot, being deleted, or the name has another identity
	BotExists                       Code = "bot_exists"    // name taken
	BotBusy                         Code = "bot_busy"      // running, parked, queued, ready or background work in the way
	ModelRequired                   Code = "model_required"
	InstructionsRequired            Code = "instructions_required"
	ToolsRequired                   Code = "tools_required"
	InvalidModel                    Code = "invalid_model" // not PROVIDER/MODEL within limits
	UnknownTool                     Code = "unknown_tool"  // not a registered tool
	InstructionsLimit               Code = "instructions_limit"
	PromptLimit                     Code = "prompt_limit"
	InvalidReasoningLevel           Code = "invalid_reasoning_level"
	InvalidBudget                   Code = "invalid_budget"
	WorkspaceMustExistAndBeAbsolute Code = "workspace_must_exist_and_be_absolute"
	WorkspaceNotUTF8                Code = "workspace_not_utf8"
	WorkspaceRequired               Code = "workspace_required" // no folder given anywhere
	InvalidCreator                  Code = "invalid_creator"
	CreatorNotFound                 Code = "creator_not_found"
	ProviderUnavailable             Code = "provider_unavailable"       // provider not registered
	ProviderFamilyMismatch          Code = "provider_family_mismatch"   // another family than the bot's
	NodeNotInSourceHistory          Code = "node_not_in_source_history" // fork point outside the source's lineage
	ForkPointHasOpenToolCalls       Code = "fork_point_has_open_tool_calls"
	ForkPointSplitsReasoning        Code = "fork_point_splits_reasoning"
	AllowNotSubset                  Code = "allow_not_subset" // allow names a tool the source may not call
	InvalidSetting                  Code = "invalid_setting"  // unknown or bad setting
	InvalidBotPage                  Code = "invalid_bot_page" // bad page

	// Sandbox and rules.

	SandboxUnavailable  Code = "sandbox_unavailable" // the sandbox program is missing or cannot make its namespaces
	InvalidSandbox      Code = "invalid_sandbox"     // unknown mode, or a Unix socket path not usable
	InvalidWritableRoot Code = "invalid_writable_root"
	WritableRootWalled  Code = "writable_root_walled"
	SandboxWidens       Code = "sandbox_widens"
	RulesInherited      Code = "rules_inherited" // rules given for a sandboxed bot's bot
	InvalidRules        Code = "invalid_rules"
	RulesLimit          Code = "rules_limit"
	SandboxDenied       Code = "sandbox_denied"
	EscalationRefused   Code = "escalation_refused" // would leave the sandbox, or is caught by a prompt rule, and no gate covers it
	CommandForbidden    Code = "command_forbidden"  // a forbidden rule, or rules marked unreadable
	PathChanged         Code = "path_changed"       // the folder or target is not what was judged

	// Work.

	IdempotencyConflict Code = "idempotency_conflict" // request id reused with other contents
	ActiveAgentLimit    Code = "active_agent_limit"
	PendingLimit        Code = "pending_limit"
	ServeLimit          Code = "serve_limit" // the session serves as many tags as it may
	WaitLimit           Code = "wait_limit"  // the session has as many waits open as it may
	DaemonDraining      Code = "daemon_draining"
	DaemonPaused        Code = "daemon_paused"
	Paused              Code = "paused"             // the turn was interrupted by a pause
	ApprovalsUnserved   Code = "approvals_unserved" // nobody served the tag for three deadlines in a row; facts tag, expired
	Cancelled           Code = "cancelled"          // interrupted by a client; a call that never ran
	DaemonShutdown      Code = "daemon_shutdown"
	ProcessInterrupted  Code = "process_interrupted"
	InvalidDelivery     Code = "invalid_delivery" // unknown mode, or expected_turn without steer
	StaleTurn           Code = "stale_turn"       // not the running turn, or the turn is over
	NoActiveTurn        Code = "no_active_turn"   // nothing to interrupt
	BudgetExhausted     Code = "budget_exhausted" // token budget used up
	InvalidFrom         Code = "invalid_from"
	InvalidOrigin       Code = "invalid_origin"
	InvalidPicture      Code = "invalid_picture"
	PictureLimit        Code = "picture_limit"
	TurnNotFound        Code = "turn_not_found"     // no such turn of this bot, or outside the lineage
	TurnResultPruned    Code = "turn_result_pruned" // retention removed the outcome
	InvalidTurnPage     Code = "invalid_turn_page"  // bad page
	InvalidHandles      Code = "invalid_handles"
	InvalidTimeout      Code = "invalid_timeout"
	InvalidHandle       Code = "invalid_handle" // malformed, or the turn itself
	UnknownHandle       Code = "unknown_handle"
	HandleUnavailable   Code = "handle_unavailable"
	ProcessLost         Code = "process_lost"
	ProcessStopped      Code = "process_stopped"
	ToolRoundLimit      Code = "tool_round_limit"      // 200 model rounds
	ContextLimit        Code = "context_limit"         // the turn alone exceeds the context
	ToolSchedulerClosed Code = "tool_scheduler_closed" // the daemon is closing and can run no call
	StorageError        Code = "storage_error"         // the store refused; detail sqlite_primary=N sqlite_extended=N
	StoreRowInvalid     Code = "store_row_invalid"     // a stored value that cannot be read

	// Reading.

	InvalidEventPage       Code = "invalid_event_page"
	EventPageItemLimit     Code = "event_page_item_limit"
	InvalidHistoryPage     Code = "invalid_history_page" // bad page or offset
	NodeNotInHistory       Code = "node_not_in_history"  // node outside the bot's lineage
	ItemTooLarge           Code = "item_too_large"       // one item over the line limit
	InvalidLimit           Code = "invalid_limit"        // bad bytes for prompts
	ArtifactNotFound       Code = "artifact_not_found"
	ArtifactPruned         Code = "artifact_pruned"
	ArtifactStreamRequired Code = "artifact_stream_required"
	InvalidArtifactPage    Code = "invalid_artifact_page"

	// Approvals.

	InvalidGate             Code = "invalid_gate"
	InvalidApprover         Code = "invalid_approver"
	InvalidApproveExpiry    Code = "invalid_approve_expiry"
	ApproveNotInTools       Code = "approve_not_in_tools"
	GateLimit               Code = "gate_limit"
	InvalidDecision         Code = "invalid_decision"
	InvalidReason           Code = "invalid_reason"
	ReasonLimit             Code = "reason_limit"
	InvalidBy               Code = "invalid_by"
	InvalidCallID           Code = "invalid_call_id"
	NoPendingApproval       Code = "no_pending_approval"
	ApprovalSuperseded      Code = "approval_superseded"
	ApprovalAlreadyAnswered Code = "approval_already_answered"
	ApprovalTagRequired     Code = "approval_tag_required"
	OverturnNotPossible     Code = "overturn_not_possible" // no denied call or step to overturn there
	ApprovalsServed         Code = "approvals_served"
	ApprovalsLost           Code = "approvals_lost"
	InvalidLease            Code = "invalid_lease"
	InvalidApprovalPage     Code = "invalid_approval_page"
	ApprovalDenied          Code = "approval_denied"  // a gate denied the call
	ApprovalExpired         Code = "approval_expired" // nobody judged it in time

	// Client-declared tools.

	InvalidClientTool   Code = "invalid_client_tool"
	ToolNameTaken       Code = "tool_name_taken"
	ClientToolsLimit    Code = "client_tools_limit"
	InvalidTag          Code = "invalid_tag"
	ToolsServed         Code = "tools_served"
	ToolsLost           Code = "tools_lost"
	InvalidCallPage     Code = "invalid_call_page"
	NoPendingCall       Code = "no_pending_call"
	CallSuperseded      Code = "call_superseded"
	CallAlreadyAnswered Code = "call_already_answered"
	InvalidToolResult   Code = "invalid_tool_result"
	ToolResultLimit     Code = "tool_result_limit"
	StepExists          Code = "step_exists"
	StepLimit           Code = "step_limit"
	NoPendingStep       Code = "no_pending_step"
	StepCancelled       Code = "step_cancelled"
	ToolNotServed       Code = "tool_not_served" // nobody answered in time
	OutcomeUnknown      Code = "outcome_unknown" // sent by a server that cannot tell what it did

	// Results of the built-in tools (R).

	ToolNotAvailable         Code = "tool_not_available"     // not among the tools the bot may call
	InvalidToolArguments     Code = "invalid_tool_arguments" // arguments fail the schema or its bounds; or the call's arguments were no JSON object
	ToolOutcomeUnknown       Code = "tool_outcome_unknown"   // the turn ended before a result was recorded; it may have had effects
	InvalidPath              Code = "invalid_path"           // empty, too long, or with a NUL
	WorkspaceUnavailable     Code = "workspace_unavailable"  // the turn's folder is gone
	ShellSpawnFailed         Code = "shell_spawn_failed"
	ShellOutputLimit         Code = "shell_output_limit"
	CapacityExhausted        Code = "capacity_exhausted"
	DetachedLimit            Code = "detached_limit"
	ProcessFinished          Code = "process_finished"
	StdinClosed              Code = "stdin_closed"
	StdinNotOpen             Code = "stdin_not_open"
	StdinFull                Code = "stdin_full"
	FileUnreadable           Code = "file_unreadable"
	FileTooLarge             Code = "file_too_large"
	FileNotRegular           Code = "file_not_regular"
	FileNotUTF8              Code = "file_not_utf8"
	IoError                  Code = "io_error"
	FileChanged              Code = "file_changed" // the file exists and the bot has not read it as it is now
	ReadLineTooLong          Code = "read_line_too_long"
	InvalidArtifactReference Code = "invalid_artifact_reference"
	ResultNotFound           Code = "result_not_found"
	ToolInputLimit           Code = "tool_input_limit"
	ToolOutputLimit          Code = "tool_output_limit"
	EditTargetNotFound       Code = "edit_target_not_found"
	EditTargetAmbiguous      Code = "edit_target_ambiguous"
	PatchInvalid             Code = "patch_invalid"
	PatchTargetMissing       Code = "patch_target_missing"
	PatchTargetExists        Code = "patch_target_exists"
	PatchContextNotFound     Code = "patch_context_not_found"
	PatchPartial             Code = "patch_partial"
	FetchSchemeUnsupported   Code = "fetch_scheme_unsupported"
	InvalidURL               Code = "invalid_url"
	FetchRedirectLimit       Code = "fetch_redirect_limit"
	FetchTimeout             Code = "fetch_timeout"
	FetchFailed              Code = "fetch_failed"
	FetchContentUnsupported  Code = "fetch_content_unsupported"
	TurnNotInHistory         Code = "turn_not_in_history"
	HistoryContextExhausted  Code = "history_context_exhausted"
	NoteContextLimit         Code = "note_context_limit"

	// Providers (T unless said).

	ProviderRateLimited               Code = "provider_rate_limited"
	ProviderQuotaExhausted            Code = "provider_quota_exhausted"
	ProviderPacingLimit               Code = "provider_pacing_limit"
	ProviderContextExceeded           Code = "provider_context_exceeded"  // the provider calls the input too long
	ProviderAdmissionTimeout          Code = "provider_admission_timeout" // no startup permit in 60 s
	ProviderConnectionFailed          Code = "provider_connection_failed"
	ProviderConnectionTimeout         Code = "provider_connection_timeout"
	ProviderConnectionTLS             Code = "provider_connection_tls"
	ProviderConnectionHandshake       Code = "provider_connection_handshake"
	ProviderSocketExpired             Code = "provider_socket_expired"
	ProviderUnexpectedBinary          Code = "provider_unexpected_binary"
	ProviderStreamFailed              Code = "provider_stream_failed"
	ProviderStreamStalled             Code = "provider_stream_stalled"
	TruncatedSSEFrame                 Code = "truncated_sse_frame"
	MissingCompletion                 Code = "missing_completion"
	ProviderExpectedSSE               Code = "provider_expected_sse"
	ProviderResponseLimit             Code = "provider_response_limit"
	SSEFrameLimit                     Code = "sse_frame_limit"
	ProviderOutputLimit               Code = "provider_output_limit"
	EventAfterCompletion              Code = "event_after_completion"
	InvalidContentIndex               Code = "invalid_content_index"
	InvalidContent                    Code = "invalid_content"
	UnsupportedContent                Code = "unsupported_content"
	UnsupportedOutputItem             Code = "unsupported_output_item"
	StreamTerminalMismatch            Code = "stream_terminal_mismatch"
	InvalidProviderResponse           Code = "invalid_provider_response"
	EmptyCompletion                   Code = "empty_completion"
	ProviderIncomplete                Code = "provider_incomplete"
	ProviderRefusal                   Code = "provider_refusal"
	ProviderError                     Code = "provider_error"
	ProviderLoginUnavailable          Code = "provider_login_unavailable"
	ProviderLoginRejected             Code = "provider_login_rejected"
	ProviderLoginExpired              Code = "provider_login_expired"
	ProviderLoginRefreshed            Code = "provider_login_refreshed"
	ProviderAWSCredentialsUnavailable Code = "provider_aws_credentials_unavailable"
	ProviderAWSCredentialsExpired     Code = "provider_aws_credentials_expired"
	ProviderModelsLimit               Code = "provider_models_limit"
	ProviderModelsDeadline            Code = "provider_models_deadline"
	ScriptExhausted                   Code = "script_exhausted"
	ScriptExpectationFailed           Code = "script_expectation_failed"
	InvalidScript                     Code = "invalid_script"
	CompactionSpanLimit               Code = "compaction_span_limit"
	CompactionSummaryLimit            Code = "compaction_summary_limit"
	EmptySummary                      Code = "empty_summary"
	CompactionNotSmaller              Code = "compaction_not_smaller"
	CompactionContextLimit            Code = "compaction_context_limit"
	CompactionVersionShared           Code = "compaction_version_shared"
	CompactionToolCall                Code = "compaction_tool_call"
	ElisionVersionShared              Code = "elision_version_shared"

	// Companions, store, start.

	InvalidCompanion          Code = "invalid_companion"
	CompanionsUnavailable     Code = "companions_unavailable"
	StoreAlreadyOwned         Code = "store_already_owned"
	SocketAlreadyOwned        Code = "socket_already_owned"
	SocketPathNotSocket       Code = "socket_path_not_socket"
	InvalidSocketPath         Code = "invalid_socket_path"
	SocketBindFailed          Code = "socket_bind_failed"
	UnsafeSocketDirectory     Code = "unsafe_socket_directory"
	StoreSchemaNewer          Code = "store_schema_newer"
	StoreSchemaUnsupported    Code = "store_schema_unsupported"
	StoreMigrationFailed      Code = "store_migration_failed"
	StoreCorrupt              Code = "store_corrupt"
	StoreHardLinksUnsupported Code = "store_hard_links_unsupported"
	StorePathUnresolved       Code = "store_path_unresolved"
	InvalidStorePath          Code = "invalid_store_path"
	StoreOnNetworkFilesystem  Code = "store_on_network_filesystem" // the store would lie on a network or shared file system
	NoProviders               Code = "no_providers"
	DuplicateProvider         Code = "duplicate_provider"
	InvalidProviderSpec       Code = "invalid_provider_spec"
	InvalidProviderURL        Code = "invalid_provider_url"
	InvalidProviderTransport  Code = "invalid_provider_transport"
	ProviderRegionUnavailable Code = "provider_region_unavailable"
	ProviderKeyUnavailable    Code = "provider_key_unavailable"
	ConfigInvalid             Code = "config_invalid" // [shell_environment_policy] of --config does not check

	// Made by a client, never on the wire (cli.md 21).

	UsageError                  Code = "usage" // the line is wrong; Usage is the event
	DaemonConnectTimeout        Code = "daemon_connect_timeout"
	DaemonReadyTimeout          Code = "daemon_ready_timeout"
	DaemonUnavailable           Code = "daemon_unavailable"
	DaemonDisconnected          Code = "daemon_disconnected"
	DaemonStartTimeout          Code = "daemon_start_timeout"
	DaemonStartFailed           Code = "daemon_start_failed"
	DaemonProtocolMismatch      Code = "daemon_protocol_mismatch"
	DaemonConfigurationMismatch Code = "daemon_configuration_mismatch"
	DaemonShutdownTimeout       Code = "daemon_shutdown_timeout"
	StoreNotFound               Code = "store_not_found" // a reading verb on a store that does not exist
	StoreChanged                Code = "store_changed"   // the daemon met again has another store
	FollowLagged                Code = "follow_lagged"   // the client's own queue filled
	BlockingToolClient          Code = "blocking_tool_client"
	AnswerInToolShell           Code = "answer_in_tool_shell"
	InsideABot                  Code = "inside_a_bot"
	CreatorIdentityRequired     Code = "creator_identity_required" // half an identity in the environment
	InstructionsUnreadable      Code = "instructions_unreadable"
	ProfileNotFound             Code = "profile_not_found"
	WorktreeNeedsGit            Code = "worktree_needs_git"
	WorktreeExists              Code = "worktree_exists"
	WorktreeFailed              Code = "worktree_failed"
	SetupFailed                 Code = "setup_failed"
	RulesUnreadable             Code = "rules_unreadable"
	ApproverUnavailable         Code = "approver_unavailable"
	ToolFailed                  Code = "tool_failed" // given as a tool's error by the Go client when a handler failed without a code
	ModelsInvalid               Code = "models_invalid"
	ModelsUnreadable            Code = "models_unreadable"
	ModelsNoneListed            Code = "models_none_listed"
	EnvFilePermissions          Code = "env_file_permissions"
	EnvFileInvalid              Code = "env_file_invalid"
	LoginPortUnavailable        Code = "login_port_unavailable"
	LoginTimeout                Code = "login_timeout"
	LoginRefused                Code = "login_refused"
	LoginNoAccount              Code = "login_no_account"
	LoginFailed                 Code = "login_failed"
)
