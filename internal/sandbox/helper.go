package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// HelperVerb is the first argument of the daemon's program where it runs as the
// helper inside a sandbox; the second is probe or file.
const HelperVerb = "__sandbox"

// requestLimit bounds what the helper reads.
const requestLimit = 64 << 20

// request is what the helper is told to do (sandbox.md 6.3).
type request struct {
	V   int  `json:"v"`
	Ops []Op `json:"ops"`
}

// Op is one change of a file. Paths are absolute and real.
type Op struct {
	Op   string `json:"op"` // write, delete, move, mkdir
	Path string `json:"path"`
	To   string `json:"to,omitempty"`
	Data []byte `json:"data,omitempty"`
	// Expect is what must be at Path: "absent", "any", "sha256:HEX", or, for
	// delete, "link": a symbolic link, which goes itself.
	Expect  string `json:"expect"`
	Parents bool   `json:"parents,omitempty"` // create missing folders above
	Mode    uint32 `json:"mode,omitempty"`    // permission bits of a new file; 0: 0644 less the umask
}

// changeTime bounds one run of the helper.
const changeTime = 30 * time.Second

func encodeRequest(ops []Op) ([]byte, error) {
	b, err := json.Marshal(request{V: 1, Ops: ops})
	if err == nil && len(b) > requestLimit {
		err = fmt.Errorf("the changes have %d bytes; at most %d are taken", len(b), requestLimit)
	}
	return b, err
}

func decodeReply(out []byte) (r Reply, err error) {
	if err = json.Unmarshal(out, &r); err != nil {
		err = fmt.Errorf("the sandbox's helper answered what cannot be read: %w", err)
	}
	return r, err
}

// ExpectContent is the Expect of a file with exactly this content.
func ExpectContent(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// The Expect of a file that must not be there, of one that may be anything, and of
// a symbolic link.
const (
	ExpectAbsent = "absent"
	ExpectAny    = "any"
	ExpectLink   = "link"
)

// Reply is the helper's answer: how many operations were done, in order, and
// what the next one failed with.
type Reply struct {
	OK      bool   `json:"ok"`
	Done    int    `json:"done"`
	Code    string `json:"code,omitempty"`
	Errno   int    `json:"errno,omitempty"`
	Message string `json:"message,omitempty"`
}

// The codes of a Reply.
const (
	ReplyReadOnly   = "read_only"
	ReplySymlink    = "symlink"
	ReplyNotRegular = "not_regular"
	ReplyChanged    = "changed"
	ReplyExists     = "exists"
	ReplyMissing    = "missing"
	ReplyBusy       = "busy"
	ReplyNoSpace    = "no_space"
	ReplyIO         = "io"
)

// RunHelper is the program of the helper: mode is its argument behind
// HelperVerb. It prints one line of JSON and gives the exit status, which is 0
// for refusals too.
func RunHelper(mode string, in io.Reader, out io.Writer) int {
	var answer any
	switch mode {
	case "probe":
		answer = takeFacts()
	case "file":
		r, err := readRequest(in)
		if err != nil {
			answer = Reply{Code: ReplyIO, Message: err.Error()}
			break
		}
		answer = carryOut(r.Ops)
	default:
		fmt.Fprintf(out, "unknown helper mode %q\n", mode)
		return 2
	}
	line, err := json.Marshal(answer)
	if err != nil {
		return 1
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return 1
	}
	return 0
}

func readRequest(in io.Reader) (*request, error) {
	text, err := io.ReadAll(io.LimitReader(in, requestLimit+1))
	if err != nil {
		return nil, err
	}
	if len(text) > requestLimit {
		return nil, fmt.Errorf("the request is longer than %d bytes", requestLimit)
	}
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	if r.V != 1 {
		return nil, fmt.Errorf("the request is of version %d, and this helper knows 1", r.V)
	}
	return &r, nil
}

// carryOut does operations in order, up to the first that fails.
func carryOut(ops []Op) Reply {
	for i, op := range ops {
		if err := do(op); err != nil {
			return failedReply(i, err)
		}
	}
	return Reply{OK: true, Done: len(ops)}
}
