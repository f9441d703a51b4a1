package beside

// Line is what happens one after another, in the order in which it came. The zero value
// is empty. It belongs to one goroutine.
type Line struct {
	busy bool
	wait []func()
}

// Busy reports whether something has begun and is not done.
func (l *Line) Busy() bool { return l.busy }

// Next begins something when what began before is done. Whoever is done calls Done, once.
func (l *Line) Next(begin func()) {
	if l.busy {
		l.wait = append(l.wait, begin)
		return
	}
	l.busy = true
	begin()
}

// First is Next before what waits already.
func (l *Line) First(begin func()) {
	if !l.busy {
		l.Next(begin)
		return
	}
	l.wait = append([]func(){begin}, l.wait...)
}

// Done begins what waits first.
func (l *Line) Done() {
	if l.busy = len(l.wait) > 0; l.busy {
		begin := l.wait[0]
		l.wait = l.wait[1:]
		begin()
	}
}
