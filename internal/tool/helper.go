package tool

// HelperMain is for now.
func HelperMain(args []string) int { return 2 }
