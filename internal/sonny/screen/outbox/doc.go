// Package outbox is a message's way: from the composer in which a person writes it to the
// daemon's answer (sonny.md 10.1 to 10.4, 30). Wherever it is, and whenever Sonny is killed
// or the daemon goes away, it is in one place, and that place has an owner:
//
//	being written   the Box, a composer's; the screen types into it     (box.go)
//	put aside       the Box, as its stash                               (box.go)
//	on its way      the Outbox, as a Flight of one of these stages      (flight.go)
//	  sending       handed over, neither taken nor refused              (send.go)
//	  steering      taken as a steer, which may come too late           (flight.go)
//	  leaving       being taken out of line by the person's word        (line.go)
//	  begins        a command or a task of the person's that begins     (begin.go)
//	  astray        left by a Sonny that was killed; the daemon is asked (astray.go)
//	in line         the daemon; the Box remembers what it was typed as  (line.go)
//	being changed   the Box: taken out of line, with those behind it    (line.go)
//	held            the Box: out of line until the person says so       (line.go)
//	come back       the Box, as what is written or held; the Outbox
//	                remembers the request under which it went out       (astray.go)
//	sent            the daemon; the history has its words               (history.go)
//
// A Box's file (keeping.go) tells all of these at once but the daemon's: a message leaves
// the composer in the same write in which it is said to be on its way, and goes to no one
// before that. The Outbox alone writes the files, and alone moves a message from one state
// to another; the screen draws what is there, and calls it by what the person did.
package outbox
