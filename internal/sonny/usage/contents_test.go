package usage

import (
	"strings"
	"testing"

	"agent/client/instructions"
	"agent/protocol"
)

func TestContents(t *testing.T) {
	t.Parallel()
	told := "preamble\n\n# AGENTS.md of /w/AGENTS.md\n\n# Memory\nof the person's own\n\n" + instructions.EndLine + "\n"
	skills := "# Skills\n\n- one: does it\n\n"
	roles := "# Roles\n\n- fast\n\n"
	memory := "# Memory\n\n## /home/facts\n\n- a fact\n\n"
	role := "# Role: lead\n\nYou lead.\n"
	var c Contents
	c.Instructions(told + skills + roles + memory + role)
	if c.Skills != int64(len(skills)) || c.Memory != int64(len(memory)) || c.Told != int64(len(told+roles+role)) {
		t.Errorf("%+v", c)
	}
	var plain Contents
	plain.Instructions("# Memory\nof a bot that somebody made with words of their own\n")
	if plain.Memory != 0 || plain.Told == 0 {
		t.Errorf("%+v", plain)
	}
	c.Declared([]protocol.ClientTool{{Name: "t", Description: "23", Parameters: []byte(`{"a":1}`)}})
	c.Item([]byte(`{"role":"user","text":"12345678","images":[{"media_type":"image/png","data":"@picture:` + strings.Repeat("0", 64) + `"}]}`))
	c.Item([]byte(`{"role":"assistant","text":"1234","thinking":"12","calls":[{"id":"c1","tool":"shell","arguments":{}}]}`))
	if c.Tools != 10 || c.Messages != 8 || c.Replies != 4 || c.Thoughts != 2 || c.Calls != int64(len("shell{}")) || c.Pictures != 1 {
		t.Errorf("%+v", c)
	}
	sum := func(shares []Share) (n int64) {
		for _, s := range shares {
			n += s.Tokens
		}
		return n
	}
	if got := sum(c.Shares(10_000)); got != 10_000 {
		t.Errorf("the shares of 10,000 are %d", got)
	}
	if shares := c.Shares(0); len(shares) != 9 || shares[8].Tokens != 2048 {
		t.Errorf("before a call: %+v", shares)
	}
	for _, c := range []struct {
		name                        string
		envelope, percent, reply, n int64
	}{
		{"three quarters of the envelope", 400_000, 75, 0, 75_000},
		{"less a reply", 400_000, 75, 10_000, 65_000},
		{"of a quarter at most", 400_000, 75, 1_000_000, 50_000},
		{"never less than nothing", 400_000, 10, 1_000_000, 0},
	} {
		if got := CompactsAt(c.envelope, c.percent, c.reply); got != c.n {
			t.Errorf("%s: %d", c.name, got)
		}
	}
}
