package approver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var (
	shellNames = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "yash"}

	interpreterNames = []string{
		"python", "pypy", "perl", "ruby", "node", "nodejs", "php", "lua", "luajit", "tclsh", "wish", "rscript", "osascript", "pwsh",
		"deno", "bun", "tsx", "ts-node", "guile", "julia", "elixir", "groovy", "scala", "swift", "uv", "poetry", "pipenv", "go",
	}

	// wrapperNames run the command in their arguments.
	wrapperNames = []string{
		"command", "builtin", "exec", "nohup", "setsid", "busybox", "nice", "ionice", "time", "env", "timeout", "stdbuf", "sudo", "doas",
		"xargs", "watch", "parallel", "flock", "strace", "unshare", "chroot", "script", "trap",
		"taskset", "chrt", "setarch", "prlimit", "systemd-run", "fakeroot", "unbuffer", "su", "runuser", "nsenter", "bwrap", "ltrace", "chronic", "uv", "poetry", "pipenv", "npx", "bunx", "caffeinate",
	}

	// fileOptions name a file that a program runs which is no interpreter of files
	// otherwise.
	fileOptionNames = []string{"awk", "gawk", "mawk", "sed", "make", "gmake"}
)

// programName is a program's name without its folder and version.
func programName(word string) string {
	name := strings.ToLower(word[strings.LastIndexByte(word, '/')+1:])
	return strings.TrimRight(name, "0123456789.-")
}

func isShell(word string) bool       { return slices.Contains(shellNames, programName(word)) }
func isInterpreter(word string) bool { return slices.Contains(interpreterNames, programName(word)) }
func isSourcing(word string) bool    { return word == "." || word == "source" || word == "eval" }

// command looks at the words of a command, in which what is computed is empty.
func (s *scripts) command(words []string, depth int) {
	if depth > maxScripts {
		s.tooMuch = true
	}
	if len(words) == 0 || !s.step() {
		return
	}
	if words[0] == "" { // it is computed, and may be a shell: $(which python3) x.py
		s.operands(words[1:])
	}
	s.program(words[0])
	name, args := programName(words[0]), words[1:]
	switch {
	case words[0] == "cd" || words[0] == "pushd":
		s.enter(args)
	case words[0] == "eval":
		s.script(strings.Join(args, " "), depth+1)
	case words[0] == "." || words[0] == "source":
		s.operands(args)
	case isShell(words[0]):
		s.shell(args, depth)
	case slices.Contains(fileOptionNames, name):
		s.fileOptions(args)
	case name == "find" || name == "fd":
		s.afterExec(args, depth)
	default:
		if isInterpreter(words[0]) {
			s.interpreter(name, args)
		}
		if slices.Contains(wrapperNames, name) {
			s.wrapped(args, depth)
		} else {
			s.behind(args, depth)
		}
	}
}

// program takes the word that names a program: by a path, or by a name that is
// looked for.
func (s *scripts) program(word string) {
	if strings.Contains(word, "/") {
		s.add(candidate{word: word, program: true})
		return
	}
	if word == "" {
		return
	}
	for _, folder := range s.path {
		path := filepath.Join(folder, word)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			s.add(candidate{word: path, program: true})
		}
	}
}

// enter adds the folders that a script may stand in from here on.
func (s *scripts) enter(args []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		for _, path := range s.paths(arg) {
			if len(s.folders) < maxFolders && !slices.Contains(s.folders, path) {
				s.folders = append(s.folders, path)
			}
		}
		return
	}
}

// shell looks at the arguments of a shell: a script behind -c, or files.
func (s *scripts) shell(args []string, depth int) {
	for i, arg := range args {
		if len(arg) > 1 && (arg[0] == '-' || arg[0] == '+') && arg[1] != '-' && strings.Contains(arg, "c") {
			s.operands(args[:i])
			for _, text := range args[i+1:] {
				if !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "+") {
					s.script(text, depth+1)
				}
			}
			return
		}
		if !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+") && s.exists(arg) {
			break // what follows is for the script
		}
	}
	s.operands(args)
}

// codeOptions are those behind which an interpreter's code stands, in the place of
// a file. The same letters are other options to others: -E hides nothing of python.
var codeOptions = map[string][]string{
	"python": {"-c", "-m"}, "pypy": {"-c", "-m"}, "perl": {"-e", "-E"}, "ruby": {"-e"}, "php": {"-r"},
	"node": {"-e", "--eval", "-p", "--print"}, "nodejs": {"-e", "--eval", "-p", "--print"},
	"bun": {"-e", "--eval", "-p", "--print"}, "osascript": {"-e"}, "rscript": {"-e"}, "julia": {"-e", "-E"}, "elixir": {"-e"},
}

// interpreter looks at the arguments of another interpreter, up to code that
// stands in them.
func (s *scripts) interpreter(name string, args []string) {
	for i, arg := range args {
		if !slices.Contains(codeOptions[name], arg) {
			continue
		}
		if arg == "-m" && i+1 < len(args) {
			s.module(args[i+1])
		}
		args = args[:i]
		break
	}
	s.operands(args)
}

// module takes the files that python may find a module in, from where it stands.
func (s *scripts) module(name string) {
	path := strings.ReplaceAll(name, ".", "/")
	for _, file := range []string{path + ".py", path + "/__main__.py", path + "/__init__.py"} {
		if s.exists(file) {
			s.add(candidate{word: file})
		}
	}
}

// operands takes the words up to the first that names a file. One that follows
// an option may be the option's: the search goes on behind it.
func (s *scripts) operands(args []string) {
	option := false
	for i, arg := range args {
		switch {
		case i == maxOperands:
			return
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			option = takesWord(arg)
			if _, value, ok := strings.Cut(arg, "="); ok {
				s.add(candidate{word: value})
			}
			continue
		}
		s.add(candidate{word: arg})
		if s.exists(arg) && !option {
			return
		}
		option = false
	}
}

// takesWord reports whether an interpreter's option may take the word behind it:
// some letters, and any long one.
func takesWord(option string) bool {
	if strings.HasPrefix(option, "--") {
		return option != "--"
	}
	return strings.IndexByte("WXoOrIMLSCf", option[len(option)-1]) >= 0
}

// fileOptions takes the words behind -f.
func (s *scripts) fileOptions(args []string) {
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--file=")
		switch {
		case ok:
		case (arg == "-f" || arg == "--file" || arg == "-E") && i+1 < len(args):
			value = args[i+1]
		case strings.HasPrefix(arg, "-f") && len(arg) > 2:
			value = arg[2:]
		default:
			continue
		}
		s.add(candidate{word: value})
	}
}

// afterExec looks at the commands that find runs.
func (s *scripts) afterExec(args []string, depth int) {
	for i, arg := range args {
		if slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X"}, arg) {
			s.command(args[i+1:], depth+1)
		}
	}
}

// behind looks for a shell or interpreter among the arguments of a program that is
// not known to run others, as many more do: taskset, su, systemd-run, a trap.
func (s *scripts) behind(args []string, depth int) {
	for i, arg := range args {
		if isShell(arg) || isInterpreter(arg) {
			s.command(args[i:], depth+1)
			return
		}
	}
}

// wrapped looks at the command in the arguments of a program that runs it. Where
// options may take words, more than one place may be its beginning.
func (s *scripts) wrapped(args []string, depth int) {
	places := 0
	for i, arg := range args {
		if strings.ContainsAny(arg, " \t\n") { // env -S, flock -c, watch
			s.script(arg, depth+1)
			if !s.exists(arg) {
				continue // it is no program whose name has a blank
			}
		}
		name, _, assigned := strings.Cut(arg, "=")
		if strings.HasPrefix(arg, "-") || assigned && !strings.Contains(name, "/") {
			continue
		}
		if places++; places > 3 {
			return
		}
		s.command(args[i:], depth+1)
	}
}
