package secret

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// tail is what makes a planted token look like one without being one of anybody's.
var tail = strings.Repeat("x1", 24)

func judge(t testing.TB) *Judge {
	t.Helper()
	return NewJudge(set(t, known, "--proxy-authorization: Bearer hunter22xx"))
}

func TestJudgeText(t *testing.T) {
	t.Parallel()
	jwt := "eyJ" + tail[:10] + "." + tail[:12] + "." + tail[:14]
	pem := "-----BEGIN PRIVATE KEY-----\n" + tail + "\n-----END PRIVATE KEY-----"
	for _, c := range []struct{ name, in, want string }{
		{"a known value", "curl -H " + known + " x", "curl -H [secret: known value] x"},
		{"a private key", pem, "-----BEGIN PRIVATE KEY-----\n[secret: private key]\n-----END PRIVATE KEY-----"},
		{"credentials in a URL", "git clone https://ann:hunter22@host/r", "git clone https://ann:[secret: URL credential]@host/r"},
		{"a field", `{"db_password":"hunter22"}`, `{"db_password":"[secret: field value]"}`},
		{"a JWT", "see " + jwt + "!", "see [secret: token]!"},
		{"a JWT of two parts is none", "eyJ" + tail[:10] + "." + tail[:12] + " ", "eyJ" + tail[:10] + "." + tail[:12] + " "},
		{"an AWS key id", "AKI" + "A0123456789ABCDEF,", "[secret: token],"},
		{"a short AWS key id is none", "AKI" + "A0123456789ABCDE,", "AKI" + "A0123456789ABCDE,"},
		{"a word that ends like a token's beginning", "risk-assessment-of-the-whole-plan-2", "risk-assessment-of-the-whole-plan-2"},
		{"a token glued to a letter", "Dsk-" + tail, "D[secret: token]"},
		{"a mark that the text brings along hides nothing", `"password":"[REDACTED]hunter22"`, `"password":"[secret: field value]"`},
		{"plain text", "nothing here: sk-short, ghp_short, eyJ.", "nothing here: sk-short, ghp_short, eyJ."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := judge(t).Text(c.in); got != c.want {
				t.Errorf("%q\n got  %q\n want %q", c.in, got, c.want)
			}
		})
	}
	for _, form := range tokenForms {
		t.Run("a token that begins "+form.prefix, func(t *testing.T) {
			t.Parallel()
			whole := form.prefix + tail[:form.least-len(form.prefix)]
			if got := judge(t).Text("=" + whole + "."); got != "=[secret: token]." {
				t.Errorf("%q of %q", got, whole)
			}
			short := whole[:form.least-1]
			if got := judge(t).Text("=" + short + "."); got != "="+short+"." {
				t.Errorf("the short %q became %q", short, got)
			}
		})
	}
}

// What runs must not be hidden by what looks like a secret.
func TestJudgeCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"a command behind an assignment", "db_password=hunter22; rm -rf ~", "db_password=[secret: field value]; rm -rf ~"},
		{"a command that gets a variable", "DB_PASSWORD=hunter22 rm -rf ~", "DB_PASSWORD=[secret: field value] rm -rf ~"},
		{"a command without blanks", "DB_PASSWORD=hunter22;rm${IFS}-rf", "DB_PASSWORD=[secret: field value];rm${IFS}-rf"},
		{"a substitution", "DB_PASSWORD=abcd$(rm -rf ~)", "DB_PASSWORD=[secret: field value]$(rm -rf ~)"},
		{"a substitution in quotes", `x_password="abcd$(rm -rf ~)"`, `x_password="abcd$(rm -rf ~)"`},
		{"a substitution far in quotes", `x_password="` + strings.Repeat("a", 2000) + `$(rm)"`, `x_password="` + strings.Repeat("a", 2000) + `$(rm)"`},
		{"backticks", "x_password=`rm -rf ~`", "x_password=`rm -rf ~`"},
		{"what looks like a YAML block", "echo; password: |\n  rm -rf ~", "echo; password: |\n  rm -rf ~"},
		{"what looks like a header", "echo authorization: hunter22xx; rm -rf ~", "echo authorization: [secret: field value]; rm -rf ~"},
		{"a header in quotes", `curl -H "Authorization: Bearer hunter22xx" u`, `curl -H "Authorization: Bearer [secret: field value]" u`},
		{
			"lines between the markers of a key", ": -----BEGIN PRIVATE KEY-----\nrm -rf ~ #\n" + tail + "\n-----END PRIVATE KEY-----",
			": -----BEGIN PRIVATE KEY-----\nrm -rf ~ #\n[secret: private key]\n-----END PRIVATE KEY-----",
		},
		{
			"a key on one line", `"-----BEGIN PRIVATE KEY-----\n` + tail + `\n-----END PRIVATE KEY-----\n"`,
			`"-----BEGIN PRIVATE KEY-----\n[secret: private key]\n-----END PRIVATE KEY-----\n"`,
		},
		{"a command in a URL", "curl http://a:$(rm${IFS}-rf)@h/", "curl http://a:$(rm${IFS}-rf)@h/"},
		{"a string", "password = 'hunter22'", "password = '[secret: field value]'"},
		{"an option", "mysql --password hunter22 -e q", "mysql --password [secret: field value] -e q"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := judge(t).Code(c.in); got != c.want {
				t.Errorf("%q\n got  %q\n want %q", c.in, got, c.want)
			}
		})
	}
}

func TestJudgeField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, field, value, want string }{
		{"a secret's name", "dbPassword", "hunter22", "[secret: field value]"},
		{"a harmless name", "path", "hunter22", "hunter22"},
		{"a harmless name with a known value", "path", known, "[secret: known value]"},
		{"a placeholder", "password", "${DB_PASSWORD}", "${DB_PASSWORD}"},
		{"a token that looks like one", "token", tail[:20], "[secret: field value]"},
		{"a token that looks like a word", "token", "continue", "continue"},
		{"a header", "Authorization", "Bearer hunter22xx", "Bearer [secret: field value]"},
		{"a known value that begins with the name", "--proxy-authorization", "Bearer hunter22xx", "[secret: known value]"},
		{"a command is never hidden", "password", "x; rm -rf ~", "x; rm -rf ~"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := judge(t).Field(c.field, c.value); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestJudgeCost(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{
		"words that end like a token": "dsk-", "starts of a JWT": "eyJ", "parts of a JWT": "eyJaaaaa.", "assignments": "x_password=",
		"strings": `x_password="$(`, "keys": beginMarker, "long upper case": "AKIA", "addresses": "://a:", "backslashes": `\`,
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(unit, (1<<20)/len(unit))
			start := time.Now()
			judge(t).Code(text)
			judge(t).Text(text)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("1 MiB took %v", took)
			}
		})
	}
}

func FuzzJudge(f *testing.F) {
	f.Add("password="+known+" ", "x")
	f.Add("://a:b@", "-----BEGIN PRIVATE KEY-----\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		j := judge(t)
		text := before + known + after
		for _, got := range []string{j.Text(text), j.Code(text), j.Field(before, known+after)} {
			if strings.Contains(got, known) {
				t.Errorf("the known value stands in %q", got)
			}
			if utf8.ValidString(text) && !utf8.ValidString(got) {
				t.Errorf("%q is no UTF-8", got)
			}
			if bytes.Contains([]byte(got), []byte(Mark)) {
				t.Errorf("%q has an ordinary mark", got)
			}
		}
	})
}
