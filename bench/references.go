package main

var references []reference

type reference struct {
	workload, kase, name string
	value                string
}

func (r *report) refer(refs []reference) error { return nil }
