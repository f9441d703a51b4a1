package cli

// companionNames are those that Sonny has the daemon keep (companions.md 1).
var companionNames []string
