package instructions

// EndLine follows the last AGENTS.md section of a composed text, or the preamble
// where there is none. What stands below it may have been written by agents, so
// the judge of a bot's calls takes nothing there for the person's orders
// (approvals.md 11).
const EndLine = "--- end of AGENTS.md files ---"

// headingOf is the heading of the section that holds the AGENTS.md at path.
func headingOf(path string) string { return "# AGENTS.md of " + escaped(path) }
