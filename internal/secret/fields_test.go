package secret

import (
	"strings"
	"testing"
)

func TestClassOf(t *testing.T) {
	t.Parallel()
	for want, names := range map[class]string{
		always: "password passwd passphrase api_key apikey access_key secret_key secret_access_key private_key signing_key " +
			"encryption_key dbPassword X-Api-Key spring.mail.password secretAccessKey APIKey --password DB_PASS mysql-pwd " +
			"client_secret clientSecret OAuthToken homepage_token my.private-key AWS_SECRET_ACCESS_KEY",
		strict: "secret token Secret TOKEN .token --token",
		header: "Authorization Proxy-Authorization proxyAuthorization",
		cookie: "Cookie Set-Cookie set_cookie",
		harmless: "pwd MAX_TOKENS access_key_id password_file tokens pass nextPageToken next_token sync-token eos_token " +
			"continuationToken pgpassword x_authorization cookies secretary key status",
	} {
		for _, name := range strings.Fields(names) {
			if got := classOf([]byte(name)); got != want {
				t.Errorf("%s: class %d, want %d", name, got, want)
			}
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	rows{
		{"AP-72 quotes stay, and what is beside", `{"secretAccessKey" : "abc/def", "count": 3}`, `{"secretAccessKey" : "§", "count": 3}`},
		{"JSON in JSON", `{"body":"{\"password\":\"a\\\"b\",\"n\":1}"}`, `{"body":"{\"password\":\"§\",\"n\":1}"}`},
		{"JSON in JSON in JSON", `\\\"api_key\\\": \\\"abc\\\", x`, `\\\"api_key\\\": \\\"§\\\", x`},
		{"a quote of another level does not end the value", `\"password\": \"a"b\"`, `\"password\": \"§\"`},
		{"a name quoted at another level is no quoted name", `\"password": "x1y2"`, `\"password": "x1y2"`},
		{"TOML", `password = 'it is'`, `password = '§'`},
		{"a string's prefix", `api_key=f"abcd"`, `api_key=f"§"`},
		{"a subscript", `d["password"] = "hunter2"`, `d["password"] = "§"`},
		{"a quote that is not closed runs to the line's end", "password=\"abc def\nnext", "password=\"§\nnext"},
		{"blanks at a value's end stay", "password=\"abc \"", "password=\"§ \""},
		{"an empty value is no value", `password=""`, `password=""`},
		{"separators", "a_token:=abcd a_token===abcd a_token==abcd a_token=>abcd a_token:abcd", "a_token:=§ a_token===§ a_token==§ a_token=>§ a_token:§"},
		{"eight blanks before the separator", "x a_token        = abcd", "x a_token        = §"},
		{"nine are too many", "x a_token         = abcd", "x a_token         = abcd"},
		{"64 blanks before the value", "x a_token=" + strings.Repeat(" ", 64) + "abcd", "x a_token=" + strings.Repeat(" ", 64) + "§"},
		{"65 are too many", "x a_token=" + strings.Repeat(" ", 65) + "abcd", "x a_token=" + strings.Repeat(" ", 65) + "abcd"},
		{"an option's value stands behind a blank", "mysql --password hunter2 --db x", "mysql --password § --db x"},
		{"an option with a separator", "x --password=hunter2 y", "x --password=§ y"},
		{"a list of options", `["--api-key" "abcd", "y"]`, `["--api-key" "§", "y"]`},
		{"a single dash is no option", "x -password hunter2", "x -password hunter2"},
		{"a value that is masked is passed over", "password=[REDACTED] x", "password=[REDACTED] x"},

		{"strict: a token", "token: 0123456789abcdef", "token: §"},
		{"strict: too short", "token: 0123456789abcde", "token: 0123456789abcde"},
		{"strict: no digit", "token: abcdefghijklmnopq", "token: abcdefghijklmnopq"},
		{"strict: a blank", `token: "abcdefghijk 0123456"`, `token: "abcdefghijk 0123456"`},

		{"a header's scheme stays", "Authorization: Bearer abc.def-ghi", "Authorization: Bearer §"},
		{"a header without a scheme", "> authorization: 0123456789 abcdef", "> authorization: 0123456789 abcdef"},
		{"a header of one word", "> authorization: 0123456789abcdef", "> authorization: §"},
		{"a header in quotes", `curl -H "Authorization: Basic abcdefgh==" https://x`, `curl -H "Authorization: Basic §" https://x`},
		{"a header as a field", `{"Authorization": "Bearer abcdefgh"}`, `{"Authorization": "Bearer §"}`},
		{"a header that is prose", "Authorization: this is required", "Authorization: this is required"},
		{"a header too short", "Authorization: Basic abc", "Authorization: Basic abc"},
		{"a header that is filled in elsewhere", `-H "Authorization: Bearer $TOKEN"`, `-H "Authorization: Bearer $TOKEN"`},
		{"a cookie", "Cookie: a=b; session=0123", "Cookie: §"},
		{"a cookie too short", "Cookie: a=b", "Cookie: a=b"},
		{"a cookie without a pair", "Cookie: chocolate", "Cookie: chocolate"},
		{"a cookie in quotes", `-H 'Cookie: session=0123' x`, `-H 'Cookie: §' x`},

		{"an object is looked into", `password: {"a_token": "b"}`, `password: {"a_token": "§"}`},
		{"a list is looked into", `"password": ["x", "api_key=abcd"]`, `"password": ["x", "api_key=§"]`},

		{"a line's start: to its end", "password: correct horse # battery", "password: § # battery"},
		{"export", "export DB_PASSWORD=a b c", "export DB_PASSWORD=§"},
		{"declare", "declare -x DB_PASSWORD=a b c", "declare -x DB_PASSWORD=§"},
		{"Dockerfile", "ENV DB_PASSWORD=abc def\nARG A_TOKEN=xy zv", "ENV DB_PASSWORD=§\nARG A_TOKEN=§"},
		{"a list's item", "  - password: a b c", "  - password: §"},
		{"a change", "+password: a b c", "+password: §"},
		{"a numbered line", "12:password: a b c", "12:password: §"},
		{"cat -n", "     7\tpassword: a b c", "     7\tpassword: §"},
		{"a search", "src/a.yml:12:  password: a b c", "src/a.yml:12:  password: §"},
		{"a search's context", "src/a.yml-12-password: a b c", "src/a.yml-12-password: §"},
		{"a search's context of a header", "src/a-12-authorization: Basic 01234567 x", "src/a-12-authorization: Basic §"},
		{"no line's start", "x password: abcd ef", "x password: § ef"},
		{"a colon without a blank", "password:abcd ef", "password:§ ef"},
		{"commas behind a value stay", "password: a b c,;", "password: §,;"},
		{"CRLF stays", "password: a b c\r\nx", "password: §\r\nx"},
		{"three bytes are left", "password: abc", "password: abc"},
		{"a comment is no value", "password: # none", "password: # none"},

		{"a YAML block", "a:\n  password: |\n    one two\n\n      three\n  user: b", "a:\n  password: |\n    §\n\n      §\n  user: b"},
		{"a YAML block with its signs", "key:\n- private_key: >-\n    abc\nx: y", "key:\n- private_key: >-\n    §\nx: y"},
		{"a YAML block in a numbered listing", "1:password: |\n2:  abc\n3:\n4-  def\n5:x: y", "1:password: |\n2:  §\n3:\n4-  §\n5:x: y"},
		{"a YAML block in a search", "a/b.yml:1:password: |\na/b.yml:2:  abc\na/b.yml:3:x: y", "a/b.yml:1:password: |\na/b.yml:2:  §\na/b.yml:3:x: y"},
		{"a YAML block in a change", "+password: |\n+  abc\n x: y", "+password: |\n+  §\n x: y"},
		{"a YAML block at the text's end", "password: |\n  abc", "password: |\n  §"},
		{"a YAML block in CRLF", "password: |\r\n  abc\r\n\r\n  def\r\nx", "password: |\r\n  §\r\n\r\n  §\r\nx"},

		{"a placeholder and more", "x password=${A}bcd efg", "x password=§ efg"},
		{"an environment's form", "x DB_PASSWORD=a,b;c)d e", "x DB_PASSWORD=§ e"},
		{"an environment's form to a quote", "'DB_PASSWORD=a,b;c)d'", "'DB_PASSWORD=§'"},
		{"a query", "GET /x?a_token=abcd&b=c", "GET /x?a_token=§&b=c"},
		{"a call's argument", "f(password=hunter2, x)", "f(password=§, x)"},
		{"a known value within a value", "x password=abc" + known + "def y", "x password=§ y"},

		{"placeholders", "x a_token=$NAME a_token=%Na.me% a_token=${NAME} a_token={{ a.b }} a_token=${{ a.b }} a_token={name} a_token=$(cat f) a_token=<your token>", "x a_token=$NAME a_token=%Na.me% a_token=${NAME} a_token={{ a.b }} a_token=${{ a.b }} a_token={name} a_token=$(cat f) a_token=<your token>"},
		{"no placeholders", "x a_token=$name a_token=${a-b} a_token=$(abc'b')", "x a_token=§ a_token=§} a_token=§'b')"},
		{"fillings", "x a_token=null a_token=None a_token=undefined a_token=**** a_token=xxxxXX a_token=....", "x a_token=null a_token=None a_token=undefined a_token=**** a_token=xxxxXX a_token=...."},
		{"its own name", `x password=password "api_key": "apiKey" `, `x password=password "api_key": "apiKey" `},
		{"paths", "x password = cfg.password, password = &a::b::api_key; password = a->b?.c!.token", "x password = cfg.password, password = &a::b::api_key; password = a->b?.c!.token"},
		{"a path to something else", "x password = cfg.passwort1", "x password = §"},
		{"a path in an environment's form", "API_KEY=cfg.api_key", "API_KEY=§"},
		{"calls", `x password=os.getenv("X") password=env['Y'] password=getpass() password = getpass(`, `x password=os.getenv("X") password=env['Y'] password=getpass() password = getpass(`},
		{"a call that ends an assignment", "password = read(a, b)", "password = read(a, b)"},
		{"a call that does not", "password: read(a, b)", "password: §"},
		{"several in a row", "password=hunter2&api_key=abcd;a_token=xyzw", "password=§"},
		{"and not at the start", "x password=hunter2&api_key=abcd;a_token=xyzw", "x password=§&api_key=§;a_token=§"},
		{"a name of more than 64 bytes counts by its end", strings.Repeat("A", 100) + "_password=hunter2", strings.Repeat("A", 100) + "_password=§"},
		{"a long value", "x password=" + strings.Repeat("abc", 2000) + " y", "x password=§ y"},
		{"a long quoted value", `"password": "` + strings.Repeat(`a\"`, 2000) + `", "x": 1`, `"password": "§", "x": 1`},
		{"a long quoted value of a level", `\"password\": \"` + strings.Repeat(`a\\\"`, 2000) + `\", x`, `\"password\": \"§\", x`},
		{"a long value to the line's end", "password: " + strings.Repeat("a b ", 2000) + "  # c", "password: §   # c"},
		{"AP-77 a mark on the line makes no path of what stands before a number", `"password":"a b":12:password=x yyyy`, `"password":"§":12:password=x yyyy`},
		{"AP-77 a masked value makes no header of what was none", `authorization: a_pwd="p",b_pwd="q",c_pwd="r" foo`, `authorization: a_pwd="§",b_pwd="§",c_pwd="§" foo`},
		{"AP-77 a masked value makes no token of what was none", `token=k2.api_key=abcd x`, `token=k2.api_key=§ x`},
		{"a quote long before a header", `"` + strings.Repeat("abc ", 3000) + `authorization: Basic abcdefgh" x`, `"` + strings.Repeat("abc ", 3000) + `authorization: Basic §" x`},
		{"no quote before a header, on a long line", strings.Repeat("abc ", 3000) + `authorization: Basic abcdefgh" x`, strings.Repeat("abc ", 3000) + `authorization: Basic §`},
		{"a line's start behind 4 KiB of blanks", strings.Repeat(" ", 4096) + "password: ab cd", strings.Repeat(" ", 4096) + "password: §"},
		{"and behind one more", strings.Repeat(" ", 4097) + "password: abcd ef", strings.Repeat(" ", 4097) + "password: § ef"},
		{"256 blanks at a value's end stay", `password="abcd` + strings.Repeat(" ", 256) + `"`, `password="§` + strings.Repeat(" ", 256) + `"`},
		{"one more and none does", `password="abcd` + strings.Repeat(" ", 257) + `"`, `password="§"`},
		{"a long value and its blanks", `password="` + strings.Repeat("abcd", 1000) + strings.Repeat(" ", 256) + `"`, `password="§` + strings.Repeat(" ", 256) + `"`},
		{"256 bytes of code", "x password = " + strings.Repeat("a.", 124) + "password", "x password = " + strings.Repeat("a.", 124) + "password"},
		{"257 bytes are none", "x password = a" + strings.Repeat("a.", 124) + "password", "x password = §"},
		{"what is not covered: elements", "<password>hunter2</password>", "<password>hunter2</password>"},
		{"what is not covered: the next line", "password:\nhunter2", "password:\nhunter2"},
	}.check(t)
}

func TestURLs(t *testing.T) {
	t.Parallel()
	rows{
		{"AP-73 host and user stay", "smtp: mail://ann:q9@mx.example/", "smtp: mail://ann:§@mx.example/"},
		{"a password with what should be escaped", "x://u:a/b?c#d@h/e", "x://u:§@h/e"},
		{"a port is no password", "http://h:8080/a@b", "http://h:8080/a@b"},
		{"an address of version 6", "http://[::1]:8080/a@b", "http://[::1]:8080/a@b"},
		{"the last @ of the authority", "x://u:a@b@h/c@d", "x://u:§@h/c@d"},
		{"a token alone", "https://ghp_0123456789abcdef@github.example/x", "https://§@github.example/x"},
		{"a user alone", "https://somebody@github.example/x", "https://somebody@github.example/x"},
		{"an empty password", "https://u:@h", "https://u:@h"},
		{"a placeholder", "https://u:${PASS}@h https://u:$PASS@h", "https://u:${PASS}@h https://u:$PASS@h"},
		{"white space, quotes and brackets end it", "x://a:b c@d x://a:b\"c@d x://a:b<c@d x://a:b\\c@d", "x://a:b c@d x://a:b\"c@d x://a:b<c@d x://a:b\\c@d"},
		{"the next one ends it", "x://a:b://c:d@e", "x://a:b://c:§@e"},
		{"two in a line", "x://a:b@c,y://d:e@f", "x://a:§@c,y://d:§@f"},
		{"4096 bytes and no more", "x://a:" + strings.Repeat("b", 4094) + "@c", "x://a:" + strings.Repeat("b", 4094) + "@c"},
		{"4096 bytes", "x://a:" + strings.Repeat("b", 4093) + "@c", "x://a:§@c"},
		{"AP-77 what masking a field leaves is judged no second time", "://password=ab/cd;x:yy@h ://password:1234/;a@b ://password=abcd;@host", "://password=§;x:yy@h ://password:§;a@b ://password=§;@host"},
		{"a known value beside a password", "x://" + known + ":pass@h", "x://" + Mark + ":§@h"},
	}.check(t)
}

const begin, end = "-----BEGIN EC PRIVATE KEY-----", "-----END EC PRIVATE KEY-----"

func TestKeys(t *testing.T) {
	t.Parallel()
	certificate := "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("MIIB", 16) + "\n-----END CERTIFICATE-----\n"
	line := strings.Repeat("MHcC", 16)
	rows{
		{"AP-74 a certificate is left", certificate, certificate},
		{"AP-74 a key's markers and lines stay", "a\n" + begin + "\n" + line + "\nab==\n" + end + "\nb", "a\n" + begin + "\n§\n§\n" + end + "\nb"},
		{"headers and blank lines", begin + "\r\nProc-Type: 4\r\n\r\n" + line + "\r\n" + end, begin + "\r\n§\r\n\r\n§\r\n" + end},
		{"in one line of JSON", `"k": "` + begin + `\n` + line + `\nabc\n` + end + `\n"`, `"k": "` + begin + `\n§\n` + end + `\n"`},
		{"a block", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nabcd\n-----END PGP PRIVATE KEY BLOCK-----", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n§\n\n§\n-----END PGP PRIVATE KEY BLOCK-----"},
		{"without an end", begin + "\n" + line + "\nabcd\nthe end.\nabcd", begin + "\n§\n§\nthe end.\nabcd"},
		{"without an end, to the next", begin + "\nabcd\n" + begin + "\nefgh\n" + end, begin + "\n§\n" + begin + "\n§\n" + end},
		{"without an end, in its own line", begin + line + `",` + "\n", begin + "§\n"},
		{"a mention", "grep '" + begin + "' file\nabcd", "grep '" + begin + "' file\nabcd"},
		{"a short word behind it", begin + "abc\nabcd", begin + "abc\nabcd"},
		{"another end is none", begin + "\nabcd\n-----END PRIVATE KEY-----\nx.", begin + "\n§\n-----END PRIVATE KEY-----\nx."},
		{"no key", "-----BEGIN PUBLIC KEY-----\nabcd\n", "-----BEGIN PUBLIC KEY-----\nabcd\n"},
		{"no label", "-----BEGIN MYPRIVATE KEY-----\nabcd\n", "-----BEGIN MYPRIVATE KEY-----\nabcd\n"},
		{"dashes before it", "------" + begin + "\nabcd\n-" + end, "------" + begin + "\n§\n§" + end},
		{"64 KiB", begin + "\n" + strings.Repeat(line+"\n", 1000) + end, begin + "\n" + strings.Repeat("§\n", 1000) + end},
		{"one line of more than 64 KiB", begin + "\n" + strings.Repeat(line, 1100) + "\nx.", begin + "\n§\nx."},
		{"a known value in a key", begin + "\n" + known + "\nabcd\n" + end, begin + "\n§\n§\n" + end},
	}.check(t)
}
