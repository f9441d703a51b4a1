package keys

import "fmt"

// Context is where a binding holds.
type Context string

// The contexts.
const (
	Global     Context = "global"
	Composer   Context = "composer"
	Transcript Context = "transcript"
	Panel      Context = "panel"
	Approval   Context = "approval"
	Picker     Context = "picker"
	Review     Context = "review"
	Copy       Context = "copy"
)

// when is a set of states of the composer: on the start screen or not, empty or not.
type when uint8

const (
	startEmpty when = 1 << iota
	startText
	restEmpty
	restText

	empty    = startEmpty | restEmpty
	withText = startText | restText
	start    = startEmpty | startText
	rest     = restEmpty | restText
	always   = start | rest
)

// row binds chords to an action in one context and set of states. An action's first row
// is where the person's own chords for it hold.
type row struct {
	action  string
	context Context
	when    when
	in      string // the one panel it holds in, "" for any
	keys    []string
	does    string
	fixed   bool // its keys cannot be unbound
	hard    bool // outside its states it never acts, whatever it is bound to
}

func nine(prefix string) []string {
	var out []string
	for i := 1; i <= 9; i++ {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return out
}

// table is every action, in the order of the list.
var table = []row{
	{action: "close_or_interrupt", context: Global, keys: []string{"esc"}, does: "close the topmost, or interrupt the turn", fixed: true},
	{action: "clear_or_interrupt_or_detach", context: Global, keys: []string{"ctrl+c"}, does: "clear the text, interrupt, or detach", fixed: true},
	{action: "suspend", context: Global, keys: []string{"ctrl+z"}, does: "stop Sonny as a job of the shell", fixed: true},
	{action: "row_next", context: Global, keys: []string{"shift+tab"}, does: "the next row of permissions"},
	{action: "redraw", context: Global, keys: []string{"ctrl+l"}, does: "draw the screen anew"},
	{action: "answer", context: Global, keys: []string{"alt+a", "ctrl+x a"}, does: "go to the approval or question"},
	{action: "fold_output", context: Global, keys: []string{"ctrl+o"}, does: "fold or unfold output"},
	{action: "fold_thoughts", context: Global, keys: []string{"alt+t", "ctrl+x h"}, does: "fold or unfold thoughts"},
	{action: "pane_next", context: Global, keys: []string{"alt+right", "ctrl+x o"}, does: "to the next pane"},
	{action: "pane_previous", context: Global, keys: []string{"alt+left"}, does: "to the pane before"},
	{action: "scroll_page_up", context: Global, keys: []string{"pgup"}, does: "a page up"},
	{action: "scroll_page_down", context: Global, keys: []string{"pgdown"}, does: "a page down"},
	{action: "scroll_up", context: Global, keys: []string{"shift+up"}, does: "a row up"},
	{action: "scroll_down", context: Global, keys: []string{"shift+down"}, does: "a row down"},
	{action: "scroll_top", context: Global, keys: []string{"ctrl+home"}, does: "to the beginning"},
	{action: "scroll_bottom", context: Global, keys: []string{"ctrl+end"}, does: "to the end, and follow"},
	{action: "copy_mode", context: Global, keys: []string{"alt+v", "ctrl+x k"}, does: "copy by keyboard"},
	{action: "back", context: Global, keys: []string{"ctrl+x b"}, does: "back to the original"},
	{action: "copy_block", context: Global, keys: []string{"ctrl+x c"}, does: "copy a code block"},
	{action: "diff", context: Global, keys: []string{"ctrl+x d"}, does: "the review panel"},
	{action: "edit_last", context: Global, keys: []string{"ctrl+x e"}, does: "edit the last message"},
	{action: "model", context: Global, keys: []string{"ctrl+x m"}, does: "choose the model"},
	{action: "new", context: Global, keys: []string{"ctrl+x n"}, does: "a fresh lead"},
	{action: "roles", context: Global, keys: []string{"ctrl+x r"}, does: "the roles"},
	{action: "sessions", context: Global, keys: []string{"ctrl+x s"}, does: "the sessions"},
	{action: "sessions", context: Composer, when: startEmpty, keys: []string{"ctrl+r"}, does: "the sessions", hard: true},
	{action: "reader", context: Global, keys: []string{"ctrl+x t"}, does: "the reader"},
	{action: "usage", context: Global, keys: []string{"ctrl+x u"}, does: "usage and cost"},
	{action: "expand_paste", context: Global, keys: []string{"ctrl+x v"}, does: "expand a paste"},
	{action: "close_pane", context: Global, keys: []string{"ctrl+x x"}, does: "close the pane"},
	{action: "copy_reply", context: Global, keys: []string{"ctrl+x y"}, does: "copy the last reply"},
	{action: "keys", context: Global, keys: []string{"ctrl+x ?"}, does: "all keys"},

	{action: "send", context: Composer, keys: []string{"enter"}, does: "send; steer while a turn runs"},
	{action: "queue", context: Composer, keys: []string{"tab"}, does: "queue; complete; to the question"},
	{action: "newline", context: Composer, keys: []string{"shift+enter", "alt+enter", "ctrl+j"}, does: "a new line"},
	{action: "rewind", context: Composer, when: empty, keys: []string{doubleEsc}, does: "pick an earlier message", hard: true},
	{action: "detach", context: Composer, when: empty, keys: []string{"ctrl+d"}, does: "leave; everything runs on"},
	{action: "switch", context: Composer, when: empty, keys: []string{"ctrl+k"}, does: "switch to another bot"},
	{action: "rail", context: Composer, when: empty, keys: []string{"ctrl+b"}, does: "the list of sessions"},
	{action: "rail", context: Composer, keys: []string{"ctrl+x l"}, does: "the list of sessions"},
	{action: "peek_next", context: Composer, when: empty, keys: []string{"ctrl+p"}, does: "look at the next task"},
	{action: "peek_previous", context: Composer, when: empty, keys: []string{"ctrl+n"}, does: "look at the task before"},
	{action: "tasks", context: Composer, when: empty, keys: []string{"ctrl+t"}, does: "the tasks"},
	{action: "history_search", context: Composer, when: always &^ startEmpty, keys: []string{"ctrl+r"}, does: "search what was sent"},
	{action: "search", context: Composer, when: empty, keys: []string{"ctrl+f"}, does: "search the transcript"},
	{action: "editor", context: Composer, keys: []string{"ctrl+g"}, does: "the draft in your editor"},
	{action: "paste_picture", context: Composer, keys: []string{"ctrl+v"}, does: "a picture from the clipboard"},
	{action: "stash", context: Composer, keys: []string{"ctrl+s"}, does: "put the draft aside, or back"},
	{action: "start_sheet", context: Composer, when: start, keys: []string{"ctrl+e"}, does: "the start screen's settings", hard: true},
	{action: "queue_edit", context: Composer, keys: append(append([]string{"alt+up"}, nine("alt+")...), "ctrl+x q"), does: "edit what is queued"},
	{action: "help", context: Composer, when: empty, keys: []string{"?"}, does: "what works now", hard: true},

	{action: "undo", context: Composer, keys: []string{"ctrl+_"}, does: "undo"},
	{action: "redo", context: Composer, keys: []string{"alt+z", "ctrl+x z"}, does: "redo"},
	{action: "delete_forward", context: Composer, when: withText, keys: []string{"ctrl+d"}, does: "delete the character after"},
	{action: "delete_forward", context: Composer, keys: []string{"delete"}, does: "delete the character after"},
	{action: "delete_back", context: Composer, keys: []string{"backspace", "ctrl+h"}, does: "delete the character before"},
	{action: "char_left", context: Composer, when: withText, keys: []string{"ctrl+b"}, does: "a character left"},
	{action: "char_right", context: Composer, when: withText, keys: []string{"ctrl+f"}, does: "a character right"},
	{action: "char_left", context: Composer, keys: []string{"left"}, does: "a character left"},
	{action: "char_right", context: Composer, keys: []string{"right"}, does: "a character right"},
	{action: "caret_up", context: Composer, keys: []string{"up"}, does: "a row up; history at the first"},
	{action: "caret_down", context: Composer, keys: []string{"down"}, does: "a row down; history at the last"},
	{action: "line_previous", context: Composer, when: withText, keys: []string{"ctrl+p"}, does: "the line before"},
	{action: "line_next", context: Composer, when: withText, keys: []string{"ctrl+n"}, does: "the next line"},
	{action: "line_start", context: Composer, keys: []string{"ctrl+a", "home"}, does: "to the line's start"},
	{action: "line_end", context: Composer, when: rest, keys: []string{"ctrl+e"}, does: "to the line's end"},
	{action: "line_end", context: Composer, keys: []string{"end"}, does: "to the line's end"},
	{action: "word_left", context: Composer, keys: []string{"alt+b", "ctrl+left"}, does: "a word left"},
	{action: "word_right", context: Composer, keys: []string{"alt+f", "ctrl+right"}, does: "a word right"},
	{action: "kill_to_end", context: Composer, when: withText, keys: []string{"ctrl+k"}, does: "cut to the line's end"},
	{action: "kill_to_start", context: Composer, keys: []string{"ctrl+u"}, does: "cut to the line's start"},
	{action: "kill_word_back", context: Composer, keys: []string{"ctrl+w"}, does: "cut the word before, to a space"},
	{action: "kill_word_left", context: Composer, keys: []string{"alt+backspace"}, does: "cut the word before"},
	{action: "kill_word_right", context: Composer, keys: []string{"alt+d"}, does: "cut the word after"},
	{action: "yank", context: Composer, keys: []string{"ctrl+y"}, does: "put back what was cut"},
	{action: "yank_pop", context: Composer, keys: []string{"alt+y"}, does: "put back what was cut before that"},
	{action: "transpose", context: Composer, when: withText, keys: []string{"ctrl+t"}, does: "swap two characters"},

	{action: "message_previous", context: Transcript, keys: []string{"alt+up"}, does: "to your message before"},
	{action: "message_next", context: Transcript, keys: []string{"alt+down"}, does: "to your next message"},

	{action: "panel_up", context: Panel, keys: []string{"up"}, does: "the row above"},
	{action: "panel_down", context: Panel, keys: []string{"down"}, does: "the row below"},
	{action: "panel_open", context: Panel, keys: []string{"enter"}, does: "open"},
	{action: "panel_filter", context: Panel, keys: []string{"/"}, does: "filter"},
	{action: "panel_help", context: Panel, keys: []string{"?"}, does: "help"},
	{action: "rail_peek", context: Panel, in: "rail", keys: []string{"p"}, does: "look at it beside"},
	{action: "peek_open", context: Panel, in: "peek", keys: []string{"o"}, does: "open it full"},
	{action: "task_open", context: Panel, in: "tasks", keys: []string{"o"}, does: "open the task"},
	{action: "task_stop", context: Panel, in: "tasks", keys: []string{"s"}, does: "stop the task"},
	{action: "task_diff", context: Panel, in: "tasks", keys: []string{"g"}, does: "its diff"},
	{action: "task_merge", context: Panel, in: "tasks", keys: []string{"m"}, does: "merge it"},
	{action: "task_rename", context: Panel, in: "tasks", keys: []string{"r"}, does: "rename it"},
	{action: "task_remove", context: Panel, in: "tasks", keys: []string{"d"}, does: "remove it"},
	{action: "session_rename", context: Panel, in: "sessions", keys: []string{"r"}, does: "rename it"},
	{action: "session_fork", context: Panel, in: "sessions", keys: []string{"f"}, does: "fork it"},
	{action: "session_archive", context: Panel, in: "sessions", keys: []string{"x"}, does: "archive it"},
	{action: "session_archived", context: Panel, in: "sessions", keys: []string{"X"}, does: "show the archived"},
	{action: "session_delete", context: Panel, in: "sessions", keys: []string{"d"}, does: "delete it"},
	{action: "session_scope", context: Panel, in: "sessions", keys: []string{"tab"}, does: "this folder, or all"},
	{action: "rule_remove", context: Panel, in: "rules", keys: []string{"d"}, does: "take the rule out"},
	{action: "rule_reach", context: Panel, in: "rules", keys: []string{"tab"}, does: "for this session, or for every bot"},
	{action: "memory_edit", context: Panel, in: "memory", keys: []string{"e"}, does: "the fact in your editor"},
	{action: "memory_remove", context: Panel, in: "memory", keys: []string{"d"}, does: "forget it"},
	{action: "memory_trust", context: Panel, in: "memory", keys: []string{"t"}, does: "trust it"},
	{action: "queued_edit", context: Panel, in: "queue", keys: []string{"e"}, does: "edit it"},
	{action: "queued_drop", context: Panel, in: "queue", keys: []string{"d"}, does: "drop it"},
	{action: "queued_up", context: Panel, in: "queue", keys: []string{"K"}, does: "move it up"},
	{action: "queued_down", context: Panel, in: "queue", keys: []string{"J"}, does: "move it down"},
	{action: "queued_join", context: Panel, in: "queue", keys: []string{"g"}, does: "join it with the one before"},
	{action: "found_previous", context: Panel, in: "search", keys: []string{"shift+enter", "alt+p"}, does: "the one before"},
	{action: "found_case", context: Panel, in: "search", keys: []string{"alt+c"}, does: "mind the case"},
	{action: "found_regexp", context: Panel, in: "search", keys: []string{"alt+r"}, does: "as a regular expression"},

	{action: "approve_first", context: Approval, keys: []string{"1"}, does: "the first choice: allow once", fixed: true},
	{action: "approve_second", context: Approval, keys: []string{"2"}, does: "the second: allow and stop asking", fixed: true},
	{action: "approve_third", context: Approval, keys: []string{"3"}, does: "the third: deny", fixed: true},
	{action: "approve_fourth", context: Approval, keys: []string{"4"}, does: "the fourth: deny and say why", fixed: true},
	{action: "approve_up", context: Approval, keys: []string{"up"}, does: "the choice above"},
	{action: "approve_down", context: Approval, keys: []string{"down"}, does: "the choice below"},
	{action: "approve_take", context: Approval, keys: []string{"enter"}, does: "take the marked choice"},
	{action: "approve_reach", context: Approval, keys: []string{"tab"}, does: "how far the rule reaches"},
	{action: "approve_words", context: Approval, keys: []string{"e"}, does: "edit the rule's words"},
	{action: "approve_whole", context: Approval, keys: []string{"v"}, does: "the whole call"},
	{action: "approve_next", context: Approval, keys: []string{"n"}, does: "the next call"},
	{action: "approve_all", context: Approval, keys: []string{"a"}, does: "all that wait"},
	{action: "approve_leave", context: Approval, keys: []string{"esc"}, does: "back to the composer", fixed: true},

	{action: "pick_up", context: Picker, keys: []string{"up", "ctrl+p"}, does: "the row above"},
	{action: "pick_down", context: Picker, keys: []string{"down", "ctrl+n"}, does: "the row below"},
	{action: "pick_open", context: Picker, keys: []string{"enter"}, does: "take it"},
	{action: "pick_beside", context: Picker, keys: []string{"alt+enter", "ctrl+x o"}, does: "open it beside"},
	{action: "pick_complete", context: Picker, keys: []string{"tab"}, does: "complete"},

	{action: "review_next_file", context: Review, keys: []string{"j"}, does: "the next file"},
	{action: "review_previous_file", context: Review, keys: []string{"k"}, does: "the file before"},
	{action: "review_next_hunk", context: Review, keys: []string{"]"}, does: "the next hunk"},
	{action: "review_previous_hunk", context: Review, keys: []string{"["}, does: "the hunk before"},
	{action: "review_scope", context: Review, keys: []string{"s"}, does: "which changes"},
	{action: "review_note", context: Review, keys: []string{"c"}, does: "a note on the line"},
	{action: "review_send", context: Review, keys: []string{"S"}, does: "send the notes"},
	{action: "review_split", context: Review, keys: []string{"u"}, does: "split or unified"},
	{action: "review_wrap", context: Review, keys: []string{"w"}, does: "wrap lines"},
	{action: "review_copy", context: Review, keys: []string{"y"}, does: "copy"},
	{action: "review_editor", context: Review, keys: []string{"e"}, does: "open in your editor"},

	{action: "copy_left", context: Copy, keys: []string{"left", "h"}, does: "left"},
	{action: "copy_down", context: Copy, keys: []string{"down", "j"}, does: "down"},
	{action: "copy_up", context: Copy, keys: []string{"up", "k"}, does: "up"},
	{action: "copy_right", context: Copy, keys: []string{"right", "l"}, does: "right"},
	{action: "copy_word_right", context: Copy, keys: []string{"w"}, does: "a word right"},
	{action: "copy_word_left", context: Copy, keys: []string{"b"}, does: "a word left"},
	{action: "copy_line_start", context: Copy, keys: []string{"0"}, does: "to the line's start"},
	{action: "copy_line_end", context: Copy, keys: []string{"$"}, does: "to the line's end"},
	{action: "copy_top", context: Copy, keys: []string{"g"}, does: "to the beginning"},
	{action: "copy_bottom", context: Copy, keys: []string{"G"}, does: "to the end"},
	{action: "copy_block_up", context: Copy, keys: []string{"{"}, does: "a paragraph up"},
	{action: "copy_block_down", context: Copy, keys: []string{"}"}, does: "a paragraph down"},
	{action: "copy_mark", context: Copy, keys: []string{"v"}, does: "begin the selection"},
	{action: "copy_take", context: Copy, keys: []string{"y", "alt+w"}, does: "copy it"},
	{action: "copy_search", context: Copy, keys: []string{"/"}, does: "search"},
}
