package approver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"agent/client/envfile"
	"agent/internal/secret"
	"agent/protocol"
)

// secretWords make a variable's value a secret when its name holds one of them.
var secretWords = []string{"token", "secret", "password", "passwd", "pwd", "key", "credential"}

// workingFolders have a secret's word in their names and hold where a shell
// stands: masking that would hide every path.
var workingFolders = []string{"PWD", "OLDPWD"}

func holdsSecret(name string) bool {
	if slices.Contains(workingFolders, name) {
		return false
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// learn takes in the secrets that are known now: of the environment, of
// ~/.agent/env, of the sign-in, and whatever variables the daemon's providers
// take their keys from. What cannot be read is an error: then what is to be
// masked is not known.
func (g *gatherer) learn(ctx context.Context) error {
	ready, err := g.client.Ready(ctx)
	if err != nil {
		return err
	}
	vars, err := g.variables()
	if err != nil {
		return err
	}
	for _, v := range vars {
		if holdsSecret(v.Name) || isKeyOf(ready, v.Name) {
			g.known.Add(secret.Named{Name: v.Name, Value: secret.NewValue(v.Value)})
		}
	}
	return g.learnSignIn()
}

// isKeyOf reports whether a provider takes its key from a variable.
func isKeyOf(ready *protocol.Ready, name string) bool {
	for _, p := range ready.Providers {
		if p.KeyEnv == name {
			return true
		}
	}
	return false
}

// variables are those of the environment and of the env file, of which both
// values count where they differ.
func (g *gatherer) variables() ([]envfile.Var, error) {
	var vars []envfile.Var
	for _, entry := range g.env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			vars = append(vars, envfile.Var{Name: name, Value: value})
		}
	}
	if g.dir == "" {
		return vars, nil
	}
	more, err := envfile.Read(filepath.Join(g.dir, "env"))
	return append(vars, more...), err
}

// maxSignIn bounds the sign-in's file, in bytes.
const maxSignIn = 1 << 20

// learnSignIn takes in the tokens of chatgpt.json: every text in a member named
// like one.
func (g *gatherer) learnSignIn() error {
	if g.dir == "" {
		return nil
	}
	text, _, err := readRegular(filepath.Join(g.dir, "chatgpt.json"), maxSignIn)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the sign-in cannot be read: %w", err)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return nil // the daemon takes no token from it either
	}
	for name, value := range members {
		var token string
		if holdsSecret(name) && json.Unmarshal(value, &token) == nil {
			g.known.Add(secret.Named{Name: name, Value: secret.NewValue(token)})
		}
	}
	return nil
}

// text is outside text as the judge reads it.
func (g *gatherer) text(s string) string { return visible(g.judge.Text(s)) }

// code is text that may run, or is about to be written, as the judge reads it.
func (g *gatherer) code(s string) string { return visible(g.judge.Code(s)) }

// environ looks a variable up.
func (g *gatherer) environ(name string) string { return envfile.Get(g.env, name) }
