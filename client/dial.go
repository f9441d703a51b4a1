package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"agent/internal/place"
	"agent/protocol"

	json "github.com/go-json-experiment/json"
)

// link is a connection whose ready line was read. lines may hold more.
type link struct {
	conn  net.Conn
	lines *protocol.LineReader
	ready *protocol.Ready
	peer  int // the process that listens, as the system says; 0 where it does not
}

func (l *link) close() {
	l.conn.Close()
	l.lines.Close()
}

// limits bound the two steps of a connection and say what exceeding each is.
type limits struct {
	connect, ready         time.Duration
	connectCode, readyCode protocol.Code
}

const stepTimeout = 5 * time.Second

func (c *Client) stepLimits() limits {
	l := limits{c.ConnectTimeout, c.ReadyTimeout, protocol.DaemonConnectTimeout, protocol.DaemonReadyTimeout}
	if l.connect == 0 {
		l.connect = stepTimeout
	}
	if l.ready == 0 {
		l.ready = stepTimeout
	}
	return l
}

// connect dials and reads the ready line. Errors: unsafe_socket_directory,
// daemon_unavailable (refused, absent, closed before ready), the two timeouts,
// and daemon_protocol_mismatch, with which a link that holds only the ready
// line as far as it was understood comes back, its connection closed.
func (c *Client) connect(ctx context.Context, target Target, bound limits) (*link, error) {
	if err := place.CheckSocketDir(target.Socket); err != nil {
		return nil, placeError(err)
	}
	conn, err := c.dial(ctx, target.Socket, bound)
	if err != nil {
		return nil, err
	}
	conn.SetReadDeadline(time.Now().Add(bound.ready)) // first: the context's end must not be overwritten
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	l := &link{conn: conn, lines: protocol.NewLineReader(conn), peer: peerPID(conn)}
	err = l.readReady()
	if !stop() && err == nil {
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		l.close()
		return l, readyError(ctx, err, target, bound)
	}
	conn.SetReadDeadline(time.Time{})
	return l, nil
}

// dial connects. Where a full backlog refuses at once, as on Linux, it tries
// again until the time is up: the daemon is there and busy.
func (c *Client) dial(ctx context.Context, socket string, bound limits) (net.Conn, error) {
	limited, cancel := context.WithTimeoutCause(ctx, bound.connect, os.ErrDeadlineExceeded)
	defer cancel()
	dial := c.Dial
	if dial == nil {
		dial = func(ctx context.Context, socket string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}
	}
	for {
		conn, err := dial(limited, socket)
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, contextError(ctx, "connect to "+socket)
		case errors.Is(err, syscall.EAGAIN):
			select {
			case <-limited.Done():
			case <-time.After(20 * time.Millisecond):
				continue
			}
			fallthrough
		case limited.Err() != nil:
			return nil, coded(bound.connectCode, fmt.Sprintf("%s did not accept within %v", socket, bound.connect), err)
		}
		return nil, coded(protocol.DaemonUnavailable, unavailable(socket, err), err)
	}
}

// unavailable says why nothing could be connected to. A confined command whose
// network is off can open no socket at all, and needs to be told the ways on
// (section 16).
func unavailable(socket string, err error) string {
	noSockets := errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EAFNOSUPPORT)
	if noSockets && os.Getenv("AGENT_SANDBOX_NETWORK_DISABLED") == "1" {
		return "this command is confined with its network off and can open no socket: run it with require_escalated, or have the person run agent configure --network on for this bot"
	}
	return "no daemon listens on " + socket + ": " + reason(err)
}

// errMismatch is a first line that is no ready line of this protocol.
type errMismatch struct{ detail string }

func (e errMismatch) Error() string { return e.detail }

// readyHead is what a ready line of any protocol is expected to hold.
type readyHead struct {
	Event    string `json:"event"`
	Protocol int    `json:"protocol"`
	PID      int64  `json:"pid"`
	Version  string `json:"version"`
}

func (l *link) readReady() error {
	line, err := l.lines.Next()
	if err != nil {
		return err
	}
	var head readyHead
	if json.Unmarshal(line, &head) != nil || head.Event != protocol.KindReady {
		return errMismatch{"the listener's first line is no ready line"}
	}
	// Signals go to this number: 0, negative ones and what the system would cut
	// to such a number name many processes at once.
	if head.PID < 1 || head.PID > math.MaxInt32 {
		return errMismatch{fmt.Sprintf("the listener says it is process %d, and there is no such process", head.PID)}
	}
	l.ready = &protocol.Ready{
		Event: head.Event, Protocol: head.Protocol, PID: int(head.PID), Version: head.Version,
		Line: append([]byte(nil), line...),
	}
	if head.Protocol != protocol.Version {
		return errMismatch{fmt.Sprintf("the daemon speaks protocol %d, this program %d; the daemon's version is %q",
			head.Protocol, protocol.Version, head.Version)}
	}
	in, err := protocol.ParseMessage(line)
	if err != nil {
		return errMismatch{err.Error()}
	}
	l.ready = in.Ready
	return nil
}

func readyError(ctx context.Context, err error, target Target, bound limits) error {
	var mismatch errMismatch
	switch {
	case errors.As(err, &mismatch):
		return protocol.Fail(protocol.DaemonProtocolMismatch, mismatch.detail)
	case errors.Is(err, protocol.ErrLineTooLong):
		return protocol.Fail(protocol.DaemonProtocolMismatch, "the listener's first line is no ready line: it is too long")
	case ctx.Err() != nil:
		return contextError(ctx, "connect to "+target.Socket)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return coded(bound.readyCode, fmt.Sprintf("%s sent no whole ready line within %v", target.Socket, bound.ready), err)
	}
	return coded(protocol.DaemonUnavailable, "the listener on "+target.Socket+" closed before its ready line: "+reason(err), err)
}

func coded(code protocol.Code, detail string, cause error) *protocol.Error {
	return &protocol.Error{Code: code, Detail: detail, Cause: cause}
}

// reason is what the system said, without the addresses around it.
func reason(err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, protocol.ErrLineTruncated):
		return "end of stream"
	}
	return strings.TrimSpace(err.Error())
}
