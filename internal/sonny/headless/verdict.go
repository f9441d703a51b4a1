package headless

import (
	"strings"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/protocol"
)

// The exit statuses (sonny.md 18). A signal's is 128 and its number.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitLimit      = 3 // timeout or budget
	exitDenied     = 4
	exitUnfit      = 5
	exitNotSetUp   = 6
	exitNoSandbox  = 7
	exitNoDaemon   = 75
	exitBySignal   = 128
	exitOutputGone = exitFailed
)

// NotSetUp is the code of a home that is not ready for a run.
const NotSetUp protocol.Code = "not_set_up"

// exits are the codes that have a status of their own.
var exits = map[protocol.Code]int{
	protocol.UsageError:               exitUsage,
	NotSetUp:                          exitNotSetUp,
	lead.NoModel:                      exitNotSetUp,
	protocol.NoProviders:              exitNotSetUp,
	protocol.ProviderUnavailable:      exitNotSetUp,
	protocol.ProviderLoginUnavailable: exitNotSetUp,
	protocol.ProviderLoginRejected:    exitNotSetUp,
	protocol.ProviderLoginExpired:     exitNotSetUp,
	protocol.SandboxUnavailable:       exitNoSandbox,
	protocol.DaemonUnavailable:        exitNoDaemon,
	protocol.DaemonStartFailed:        exitNoDaemon,
	protocol.DaemonStartTimeout:       exitNoDaemon,
	protocol.DaemonConnectTimeout:     exitNoDaemon,
	protocol.DaemonReadyTimeout:       exitNoDaemon,
	protocol.DaemonDisconnected:       exitNoDaemon,
	protocol.StoreAlreadyOwned:        exitNoDaemon,
	protocol.DaemonProtocolMismatch:   exitNoDaemon,
	"daemon_older":                    exitNoDaemon,
	"daemon_newer":                    exitNoDaemon,
}

// verdictOf is how a run ends that an error ended.
func verdictOf(err error) (status string, exit int, failure *Failure) {
	failure = failureOf(err)
	switch failure.Code {
	case protocol.BudgetExhausted:
		return OverBudget, exitLimit, failure
	}
	if exit, ok := exits[failure.Code]; ok {
		return Failed, exit, failure
	}
	return Failed, exitFailed, failure
}

// failureOf gives every failure a code.
func failureOf(err error) *Failure {
	e := fault.Exec.Told(err)
	return &Failure{Code: e.Code, Detail: e.Detail}
}

// ended is how a turn ended, as far as the daemon says it.
type ended struct {
	status string
	code   protocol.Code
	detail string
}

func endOf(f *protocol.TurnFinished) ended {
	e := ended{status: f.Status}
	if f.Error != nil {
		e.code = *f.Error
	}
	if f.Detail != nil {
		e.detail = fault.Exec.Told(protocol.Fail(e.code, *f.Detail)).Detail
	}
	return e
}

func (e ended) failure() *Failure {
	if e.code == "" {
		return nil
	}
	return &Failure{Code: e.code, Detail: e.detail}
}

// stoppedByApprover reports whether the automatic approver's breaker ended the turn, or
// that nobody served it.
func (e ended) stoppedByApprover() bool {
	return e.status == protocol.StatusInterrupted &&
		(e.code == protocol.ApprovalsUnserved || strings.HasPrefix(e.detail, "stopped: "))
}

// verdict is the run's end by the turn's. A run that Sonny interrupted has said why
// before.
func (e ended) verdict(why reason, only denials) (status string, exit int) {
	switch {
	case e.status == protocol.StatusCompleted:
		return Completed, exitDone
	case why.is == byTimeout:
		return TimedOut, exitLimit
	case why.is == bySignal:
		return Interrupted, exitBySignal + why.signal
	case e.code == protocol.BudgetExhausted:
		return OverBudget, exitLimit
	case e.stoppedByApprover() && only.nothingElse():
		return Denied, exitDenied
	case e.status == protocol.StatusInterrupted:
		return Interrupted, exitFailed
	}
	if exit, ok := exits[e.code]; ok {
		return Failed, exit
	}
	return Failed, exitFailed
}

// denials count what came of a run's calls.
type denials struct{ denied, other int }

// nothingElse reports whether nothing but denied calls came of the run.
func (d denials) nothingElse() bool { return d.denied > 0 && d.other == 0 }

// reason is why Sonny itself ended a turn.
type reason struct {
	is     cause
	signal int
}

type cause uint8

const (
	itself cause = iota // nobody but the turn
	byTimeout
	bySignal
	byClosedOutput
)
