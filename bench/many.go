package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"agent/protocol"
)

// each does something for many bots at once.
func each(bots int, do func(n int) error) error {
	errs := make([]error, bots)
	var wait sync.WaitGroup
	for n := range bots {
		wait.Go(func() { errs[n] = do(n) })
	}
	wait.Wait()
	return few(errs)
}

// some does something for the bots from one number up to another, for as many
// at once as the daemon admits. After an error it stops.
func some(from, to int, do func(n int) error) error {
	numbers, failed := make(chan int), make(chan struct{})
	var once sync.Once
	errs := make([]error, protocol.MaxAdmissions)
	var wait sync.WaitGroup
	for w := range errs {
		wait.Go(func() {
			for n := range numbers {
				if errs[w] = do(n); errs[w] != nil {
					once.Do(func() { close(failed) })
					return
				}
			}
		})
	}
feed:
	for n := from; n < to; n++ {
		select {
		case numbers <- n:
		case <-failed:
			break feed
		}
	}
	close(numbers)
	wait.Wait()
	return few(errs)
}

// few joins the first of many errors: one cause often has thousands.
func few(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if n := len(errs); n > 3 {
		errs = append(errs[:3], fmt.Errorf("and %d more errors", n-3))
	}
	return errors.Join(errs...)
}
