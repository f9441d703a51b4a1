package tool

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// fetchedPage is the result of web_fetch.
type fetchedPage struct {
	URL         string
	FinalURL    string `json:"final_url"`
	Status      int
	ContentType string `json:"content_type"`
	Text        string
	Truncated   bool
	Artifacts   []string
	Files       []string
}

func fetch(t testing.TB, env *Env, url string, more ...any) (fetchedPage, Result) {
	t.Helper()
	args := map[string]any{"url": url}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	r := call(t, env, "web_fetch", args)
	var p fetchedPage
	if err := json.Unmarshal([]byte(r.Output), &p); err != nil {
		t.Fatalf("%v: %.300s", err, r.Output)
	}
	if !r.External {
		t.Errorf("the turn is not marked as having read outside content: %.300s", r.Output)
	}
	return p, r
}

// site is a server of this machine.
func site(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// rawSite is a server that gives the same bytes to whoever has sent something.
func rawSite(t testing.TB, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-served })
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4<<10))
			_, _ = io.WriteString(c, answer)
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String() + "/"
}

// serves answers with a body of a type.
func serves(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		_, _ = io.WriteString(w, body)
	}
}

func TestFetchTypesAndCharacters(t *testing.T) {
	t.Parallel()
	wide := func(order func(hi, lo byte) []byte, text string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(text)) {
			b = append(b, order(byte(u>>8), byte(u))...)
		}
		return string(b)
	}
	little := func(hi, lo byte) []byte { return []byte{lo, hi} }
	ascii := strings.Repeat("a", 2000)
	for _, row := range []struct{ name, contentType, body, text string }{
		{"HTML is made text", "text/html; charset=utf-8", "<h1>A</h1><p>b &amp; c", "# A\n\nb & c\n"},
		{"XHTML is made text", "application/xhtml+xml", "<p>a</p>", "a\n"},
		{"plain text is as it is", "text/plain", "a  <b>\r\n\tc", "a  <b>\r\n\tc"},
		{"JSON is as it is", "application/json", `{"a": "<b>é"}`, `{"a": "<b>é"}`},
		{"a type that ends in +json", "application/problem+json", `{}`, `{}`},
		{"a picture that is text", "image/svg+xml", "<svg/>", "<svg/>"},
		{"HTML without a type is found out", "", "<!doctype html><p>a", "a\n"},
		{"text without a type is found out", "", "just text", "just text"},
		{"an empty page of any type", "image/png", "", ""},
		{"the header names the characters", "text/html; charset=iso-8859-1", "<p>caf\xe9", "café\n"},
		{"the header goes before the page's own word", "text/html; charset=utf-8", `<meta charset="shift_jis"><p>é`, "é\n"},
		{"a word that only looks as if the page named them", "text/html", "<script charset=utf-8></script>" + strings.Repeat(" ", 2000) + "<p>größer", "größer\n"},
		{"the page names the characters", "text/html", "<meta charset=shift_jis><p>\x93\xfa\x96\x7b", "日本\n"},
		{"the page names them in the old way", "text/html", `<meta http-equiv="Content-Type" content="text/html; charset=windows-1251"><p>` + "\xcf\xf0", "Пр\n"},
		{"a UTF-8 mark goes before all", "text/html; charset=iso-8859-1", byteOrderMark + "<p>é", "é\n"},
		{"a mark is none of the text", "text/plain", byteOrderMark + "é", "é"},
		{"UTF-16 by its mark", "text/plain", "\xff\xfe" + wide(little, "aé日"), "aé日"},
		{"UTF-16 by the header", "text/html; charset=utf-16le", wide(little, "<p>aé"), "aé\n"},
		{"UTF-8 that nobody names", "text/html", "<p>é", "é\n"},
		{"UTF-8 that nobody names and that comes late", "text/plain", ascii + "é日", ascii + "é日"},
		{"windows-1252 that nobody names", "text/html", "<p>\x93caf\xe9\x94", "“café”\n"},
		{"windows-1252 that comes late", "text/plain", ascii + "\x80", ascii + "€"},
		{"bad UTF-8 that the header names", "text/plain; charset=utf-8", "a\xffb", "a\uFFFDb"},
		{"a name of characters that nobody knows", "text/html; charset=klingon", "<p>é", "é\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			p, r := fetch(t, env, site(t, serves(row.contentType, row.body)))
			if ok(t, r); p.Text != row.text || p.Status != 200 || p.Truncated || len(p.Artifacts) > 0 {
				t.Errorf("got %+.300v, want %.300q", p, row.text)
			}
			if row.contentType != "" && p.ContentType != row.contentType {
				t.Errorf("type %s", p.ContentType)
			}
		})
	}
	for _, row := range []struct{ name, contentType, body string }{
		{"a picture", "image/png", "\x89PNG\r\n\x1a\n"},
		{"bytes", "application/octet-stream", "abc"},
		{"a picture without a type", "", "\x89PNG\r\n\x1a\n\x00\x00"},
		{"what says that it is text and is none", "text/html", "<p>a\x00\x01\x02"},
		{"a type that is none", "nonsense", "abc"},
	} {
		t.Run("refused: "+row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			_, r := fetch(t, env, site(t, serves(row.contentType, row.body)))
			failed(t, r, "fetch_content_unsupported", "text")
		})
	}
}

func TestFetchRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, url, code, says string }{
		{"RT-35 a file", "file:///etc/passwd", "fetch_scheme_unsupported", `not "file"`},
		{"PO-111 another scheme", "ftp://127.0.0.1/", "fetch_scheme_unsupported", `not "ftp"`},
		{"an address without scheme", "127.0.0.1/x", "invalid_url", "must begin with https://"},
		{"an address without host", "http:///x", "invalid_url", "names no host"},
		{"an address that is none", "http://[::1", "invalid_url", "cannot be read"},
		{"a port that is none", "http://127.0.0.1:port/", "invalid_url", "cannot be read"},
		{"a user name", "http://me@127.0.0.1/", "invalid_url", "user name or password"},
		{"a password", "http://me:secret@127.0.0.1/", "invalid_url", "user name or password"},
		{"nothing", "", "invalid_url", "must begin with"},
		{"a control character", "http://127.0.0.1/\n", "invalid_url", "cannot be read"},
		{"too long an address", "http://127.0.0.1/" + strings.Repeat("a", 4096), "invalid_tool_arguments", "4113 bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			r := call(t, env, "web_fetch", map[string]any{"url": row.url})
			failed(t, r, row.code, row.says)
			if strings.Contains(r.Output, "secret") {
				t.Errorf("the password is in %s", r.Output)
			}
		})
	}
	t.Run("too long a time", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		failed(t, call(t, env, "web_fetch", map[string]any{"url": "http://127.0.0.1", "timeout_ms": 60001}), "invalid_tool_arguments", "1 to 60000")
	})
	t.Run("nobody answers", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		s := httptest.NewServer(http.NotFoundHandler())
		s.Close()
		_, r := fetch(t, env, s.URL)
		failed(t, r, "fetch_failed", "refused")
	})
	t.Run("an answer that breaks off", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		_, r := fetch(t, env, site(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "short")
		}))
		failed(t, r, "fetch_failed", "unexpected EOF")
	})
	t.Run("what the server sent in the place of an answer is not quoted at length", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		for _, answer := range []string{
			strings.Repeat("\x01", 60_000) + "\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: " + strings.Repeat("9", 60_000) + "\r\n\r\n",
			"HTTP/1.1 302 Found\r\nLocation: http://[" + strings.Repeat("a", 60_000) + "\r\n\r\n",
		} {
			_, r := fetch(t, env, rawSite(t, answer))
			if failed(t, r, "fetch_failed", "…"); len(r.Output) > 4<<10 {
				t.Errorf("the failure takes %d bytes: %.200s", len(r.Output), r.Output)
			}
		}
	})
	t.Run("headers without end", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		_, r := fetch(t, env, site(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", headerLimit))
		}))
		failed(t, r, "fetch_failed", "headers")
	})
	t.Run("an encoding that was not asked for", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		_, r := fetch(t, env, site(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "x")
		}))
		failed(t, r, "fetch_content_unsupported", `encoded as "br"`)
	})
}

func TestFetchRedirects(t *testing.T) {
	t.Parallel()
	requests := make(chan *http.Request, 100)
	base := site(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		left, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/hops/"))
		switch {
		case err == nil && left > 0:
			http.SetCookie(w, &http.Cookie{Name: "c", Value: "v", Path: "/"})
			http.Redirect(w, r, fmt.Sprint("/hops/", left-1), http.StatusFound)
		case r.URL.Query().Get("to") != "":
			to := r.URL.Query().Get("to")
			if to == "long" {
				to = "/" + strings.Repeat("a", 5000)
			}
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		default:
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "there")
		}
	})
	t.Run("PO-111 ten redirects are followed, without cookies, authorization or referrer", func(t *testing.T) {
		env, _ := newEnv(t)
		p, r := fetch(t, env, base+"/hops/10#part")
		if ok(t, r); p.Text != "there" || p.URL != base+"/hops/10#part" || !strings.HasPrefix(p.FinalURL, base+"/hops/0") {
			t.Errorf("got %+v", p)
		}
		for range 11 {
			for name := range (<-requests).Header {
				if !slices.Contains([]string{"User-Agent", "Accept", "Accept-Encoding", "Connection"}, name) {
					t.Errorf("the header %s was sent", name)
				}
			}
		}
	})
	t.Run("RT-35 eleven are too many", func(t *testing.T) {
		env, _ := newEnv(t)
		_, r := fetch(t, env, base+"/hops/11")
		failed(t, r, "fetch_redirect_limit", "more than 10 times")
	})
	for _, row := range []struct{ name, to, code, says string }{
		{"a redirect to a file", "file:///etc/passwd", "fetch_scheme_unsupported", `leads on to "file:///etc/passwd": only http and https`},
		{"a redirect with a password", "http://me:hidden@127.0.0.1/", "invalid_url", "user name or password"},
		{"a redirect to a very long address", "long", "invalid_url", "at most 4096"},
	} {
		t.Run(row.name, func(t *testing.T) {
			env, _ := newEnv(t)
			_, r := fetch(t, env, base+"/?to="+row.to)
			failed(t, r, row.code, row.says)
			if strings.Contains(r.Output, "hidden") {
				t.Errorf("the password is in %s", r.Output)
			}
		})
	}
}

func TestFetchStatus(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	p, r := fetch(t, env, site(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "no")
	}))
	if ok(t, r); p.Status != 418 || p.Text != "no" {
		t.Errorf("got %+v", p)
	}
}

func TestFetchIsRedacted(t *testing.T) {
	t.Parallel()
	const key = "sk-12345678"
	env, _ := newEnv(t, key)
	_, r := fetch(t, env, site(t, serves("text/html; x="+key, "<p>a "+key+" <a href=/"+key+">b</a>"))+"/?k="+key)
	if ok(t, r); strings.Contains(r.Output, key) || strings.Count(r.Output, "[REDACTED]") != 5 {
		t.Errorf("got %s", r.Output)
	}
}

func TestFetchLongPages(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 63) + "\n"
	for _, row := range []struct {
		name            string
		size            int
		artifact, spill bool
		truncated       bool
	}{
		{"64 KiB are shown whole", 64 << 10, false, false, false},
		{"more is kept as a row", 65 << 10, true, false, false},
		{"more than 1 MiB is kept as a file", 2 << 20, true, true, false},
		{"4 MiB are read whole", 4 << 20, true, true, false},
		{"RT-35 of 6 MiB 4 are read", 6 << 20, true, true, true},
	} {
		for _, packed := range []bool{false, true} {
			name := row.name
			if packed {
				name += ", packed"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				env, _ := newEnv(t)
				p, r := fetch(t, env, site(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/plain")
					var to io.Writer = w
					if packed && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
						w.Header().Set("Content-Encoding", "gzip")
						z := gzip.NewWriter(w)
						defer z.Close()
						to = z
					}
					for range row.size / len(line) {
						if _, err := io.WriteString(to, line); err != nil {
							return
						}
					}
				}))
				ok(t, r)
				if p.Truncated != row.truncated || (len(r.Artifacts) == 1) != row.artifact || (len(p.Files) == 1) != row.spill {
					t.Fatalf("truncated %v, artifacts %v, files %v", p.Truncated, p.Artifacts, p.Files)
				}
				if !row.artifact {
					if len(p.Text) != row.size {
						t.Errorf("%d bytes shown", len(p.Text))
					}
					return
				}
				if !slices.Equal(p.Artifacts, []string{"7/call_1/body"}) || !strings.Contains(p.Text, "call read with artifact 7/call_1/body") {
					t.Errorf("artifacts %v", p.Artifacts)
				}
				if a := r.Artifacts[0]; a.Stream != "body" || a.Bytes != int64(min(row.size, 4<<20)) || (a.File != "") != row.spill {
					t.Errorf("kept %s, %d bytes, %q", a.Stream, a.Bytes, a.File)
				}
			})
		}
	}
	t.Run("a page that unpacks without end is cut, and its packed form, too", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		p, r := fetch(t, env, site(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for { // empty blocks: much to read, nothing in it
				if z.Flush() != nil {
					return
				}
			}
		}))
		if ok(t, r); !p.Truncated || p.Text != "" {
			t.Errorf("got %+v", p)
		}
	})
	t.Run("links that grow past all measure end the text", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		p, r := fetch(t, env, site(t, serves("text/html", "<base href=http://h/"+strings.Repeat("b", 2000)+"/>"+strings.Repeat("<a href=x>", 100_000))))
		if ok(t, r); !p.Truncated || r.Artifacts[0].Bytes != maxFetched {
			t.Errorf("truncated %v, %d bytes", p.Truncated, r.Artifacts[0].Bytes)
		}
	})
}

func TestFetchEnds(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{}, 10)
	hangs := func(head bool) string {
		return site(t, func(w http.ResponseWriter, r *http.Request) {
			if head {
				w.Header().Set("Content-Type", "text/plain")
				_, _ = io.WriteString(w, strings.Repeat("a", 2<<20))
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
			gone <- struct{}{}
		})
	}
	for _, head := range []bool{false, true} {
		name := map[bool]string{false: "before the answer", true: "within the page"}[head]
		t.Run("with its time, "+name, func(t *testing.T) {
			env, _ := newEnv(t)
			_, r := fetch(t, env, hangs(head), "timeout_ms", 100)
			failed(t, r, "fetch_timeout", "within 100ms")
			<-gone
			if left, _ := filepath.Glob(env.FilesDir + "/*"); len(left) > 0 || len(r.Artifacts) > 0 {
				t.Errorf("left %v, %v", left, r.Artifacts)
			}
			if env.Captures.left != 16<<20 {
				t.Errorf("the budget has %d bytes", env.Captures.left)
			}
		})
		t.Run("with its call, "+name, func(t *testing.T) {
			env, _ := newEnv(t)
			ctx, cancel := context.WithCancel(t.Context())
			started := make(chan struct{})
			url := site(t, func(w http.ResponseWriter, r *http.Request) {
				if head {
					_ = http.NewResponseController(w).Flush()
				}
				close(started)
				<-r.Context().Done()
				gone <- struct{}{}
			})
			go func() {
				<-started
				cancel()
			}()
			failed(t, callContext(t, ctx, env, "web_fetch", map[string]any{"url": url}), "cancelled", "the turn ended")
			<-gone
		})
	}
}

func init() {
	children["page"] = func() {
		debug.SetGCPercent(35) // as the daemon does
		env := childEnv()
		urls := strings.Split(os.Getenv("TOOL_TEST_DIR"), " ")
		env.FilesDir = filepath.Join(urls[0], "files", "3")
		run := func(url string) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			args, _ := json.Marshal(map[string]string{"url": url})
			if r := fetchTool.Run(ctx, env, args); r.Failed {
				fmt.Println(r.Output)
				os.Exit(1)
			}
		}
		run(urls[1])
		run(urls[1])
		before := highWater()
		run(urls[2])
		fmt.Print(highWater() - before)
	}
}

func TestFetchOfALargePageTakesLittleMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // memory is read from /proc
	}
	t.Parallel()
	const size = 4<<20 - 100
	fill := func(text string) string { return strings.Repeat(text, size/len(text)) }
	for _, row := range []struct{ name, page string }{
		{"paragraphs and links", fill("<div class=c><p>Some words of <a href=\"/a/page\">a page</a> &amp; more.</p></div>\n")},
		{"one text", fill("words ")},
		{"one word", fill("w")},
		{"one attribute", "<p title=\"" + fill("a > b ") + "\">x"},
		{"one script", "<script>" + fill("if (a < b) { c }\n") + "</script>"},
		{"one comment", "<!--" + fill("<p>") + "-->"},
		{"preformatted newlines", "<pre>" + fill("\n")},
		{"nothing but tags", fill("<ul><li>")},
	} {
		t.Run(row.name, func(t *testing.T) {
			warm := site(t, serves("text/html", row.page[:len(row.page)/3]))
			grown, err := strconv.Atoi(child(t, "page", t.TempDir()+" "+warm+" "+site(t, serves("text/html", row.page))))
			limit := 1<<10 + 512
			if raceEnabled {
				limit *= 8 // the detector keeps shadow memory
			}
			if err != nil || grown >= limit {
				t.Errorf("grew by %d KiB, %v", grown, err)
			}
		})
	}
}
