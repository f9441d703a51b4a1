package screen

import "syscall"

// suspend gives the terminal back and stops the program until it is continued.
func (a *App) suspend() {
	a.o.Term.Suspend()
	_ = syscall.Kill(0, syscall.SIGTSTP) // the whole job, as the terminal would
	if err := a.o.Term.Resume(); err != nil {
		a.quit = true
	}
}
