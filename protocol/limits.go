package protocol

// Limits of the wire (section 1) and of single fields. Sizes are bytes of
// UTF-8, times milliseconds.
const (
	MaxLine    = 1 << 20   // a line in either direction, its newline included
	MaxDepth   = 128       // nesting of a request; the request itself is level 1
	MaxInteger = 1<<53 - 1 // every integer on the wire is at most this

	MaxPrompt  = 256 << 10
	MaxText    = 64 << 10 // instructions, compaction instructions
	MaxHandles = 64       // handles of one wait
	MaxTags    = 64       // tags that one session serves
	MaxWaits   = 256      // waits that one session may have open

	MaxName      = 128     // what the name rule allows
	MaxRequestID = 128     // the id of a request, when it is a string
	MaxDetail    = 8 << 10 // an answer's detail; a longer one is cut
	MaxProvider  = 64      // the provider part of a model reference
	MaxModel     = 256     // the model part

	MaxEventPage    = 512 << 10 // encoded entries of one events page
	MaxBotPage      = 512 << 10 // encoded records of one bots page
	MaxHistoryPage  = 768 << 10 // encoded items of one history_items page, a target
	MaxApprovalPage = 256 << 10 // encoded entries of one approvals or tool_calls page
	MaxQueueLines   = 4096      // lines waiting in one session's output
	MaxQueueBytes   = 2 << 20   // bytes waiting there
	MaxSessions     = 4096      // sessions of one daemon
	MaxAdmissions   = 32        // create and submit under way at once

	DefaultPage         = 64  // limit of bots, turns, approvals, tool_calls
	MaxPage             = 256 // greatest limit of those, and of events
	DefaultHistoryLimit = 400 // limit of history_nodes, also its greatest
	MaxHistoryNodes     = 400 // nodes of one history_items

	MaxWaitMS  = 86_400_000 // wait's timeout_ms, shutdown's grace_ms
	MinLeaseMS = 100
	MaxLeaseMS = 600_000

	MaxApproveExpireMS  = 86_400_000
	MaxApprovalHoldMS   = 600_000
	MaxGates            = 16
	MaxAnswerReason     = 16_384 // answer's reason
	MaxReason           = 1_024  // reason of interrupt, pause and approve_step
	MaxBy               = 128    // answer's and pause's by
	MaxWritableRoots    = 64
	MaxUnixSockets      = 64
	MaxRuleFiles        = 256
	MaxRuleText         = 256 << 10 // of all rule files together
	MaxRuleFileName     = 255
	MaxRules            = 1_024
	MaxClientTools      = 64
	MaxClientSchemas    = 64 << 10 // parameters of all client tools together
	MaxToolName         = 64
	MaxToolDescription  = 8 << 10
	MinClientExpireMS   = 1_000
	MaxClientExpireMS   = 86_400_000
	ClientExpireMS      = 600_000 // a client tool's expire_ms when it states none
	MaxToolResult       = 512 << 10
	MaxToolErrorCode    = 64
	MaxPictures         = 8
	MaxPictureBytes     = 4 << 20
	MaxSteps            = 256 // steps of one served call
	MaxStepArguments    = 256 << 10
	MaxStepDetail       = 2_048
	MaxCompanions       = 16
	MaxPromptsBytes     = 262_144 // prompts' bytes, and one text of its answer
	DefaultPromptsBytes = 65_536
	MinArtifactLimit    = 4
	MaxArtifactLimit    = 65_536
	MaxOutcomeText      = 16_384 // characters of an outcome's text
)
