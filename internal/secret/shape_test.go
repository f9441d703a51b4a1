package secret

import "testing"

func TestShapesOfSecrets(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		form       bool
	}{
		{"a provider's key", "sk-abcdef", true},
		{"a token of GitHub's inside a command", "curl -H ghp_0123456789abcdefghijABCDEFGHIJ", true},
		{"a signed token", "eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl", true},
		{"a private key", "-----BEGIN PRIVATE KEY-----\nMHcC\n-----END PRIVATE KEY-----", true},
		{"a password in an address", "https://ann:hunter22@example.com/x", true},
		{"a user in an address", "https://abcdefgh@example.com/x", true},
		{"a secret in a query", "https://example.com/?api_key=a", true},
		{"the user of a git remote", "ssh://git@example.com/a.git", false},
		{"a git remote without a scheme", "git@example.com:a/b.git", false},
		{"a path", "/home/ann/projects/authorization/notes.md", false},
		{"a model", "openrouter/anthropic/claude-sonnet-4-5-20250929", false},
		{"a plain address", "https://example.com/mcp?page=2", false},
		{"a word", "warn", false},
		{"a command that reads a secret", `curl -H "Authorization: Bearer $TOKEN" https://x`, false},
		{"a password that a variable holds", "mysql --password=$PW -e 'select 1'", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := SecretForm(row.text); got != row.form {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestNamesAndDensityOfSecrets(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]bool{"TOKEN": true, "MY_API_KEY": true, "apiKey": true, "X-Authorization": true, "Cookie": true, "KEYBOARD": false, "LOG_LEVEL": false} {
		if SecretName(name) != secret {
			t.Errorf("%s: %v", name, !secret)
		}
	}
	for text, dense := range map[string]bool{
		"q8Zr2LmX7vTn4KpW9sYd": true, "a q8Zr2LmX7vTn4KpW9sYd b": true, "q8Zr2LmX7vTn4KpW9sY": false,
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": false, "abababababcdcdcdcdcdababab": false, "": false,
		"/usr/local/share/fonts/quick-brown-xyz": false, "~/usr/local/share/fonts/quick-brown-xyz": false, "/q8Zr2LmX7vTn4KpW9sYd/x": true,
		"/home/ann/projects/some-really-long-folder-name/x": false, "123e4567-e89b-12d3-a456-426614174000": false, "--max-old-space-size=4096": false,
	} {
		if SecretDense(text) != dense {
			t.Errorf("%q: %v", text, !dense)
		}
	}
}
