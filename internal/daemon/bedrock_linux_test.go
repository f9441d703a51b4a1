package daemon_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"agent/internal/fakemodel"
	"agent/internal/model/modeltest"
)

const (
	awsID    = "AKID-OF-THE-TEST"
	awsKey   = "secret-access-key-of-the-test"
	awsToken = "session-token-of-the-test"
)

// bedrock is Bedrock: it checks the signature of what comes, takes it off, and
// hands the rest to a strict model server.
type bedrock struct {
	t       *testing.T
	region  string
	service string
	path    string // before /v1
	models  http.Handler
	refuse  atomic.Pointer[string] // an error type to refuse all with; nil: none
	asked   atomic.Int64
}

func (b *bedrock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.asked.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		b.t.Error(err)
	}
	if kind := b.refuse.Load(); kind != nil {
		w.Header().Set("x-amzn-errortype", *kind+":http://internal.amazon.com/")
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"message":"refused, as %s may not"}`, awsID)
		return
	}
	want := "UNSIGNED-PAYLOAD"
	if b.service == "bedrock" {
		sum := sha256.Sum256(body)
		want = hex.EncodeToString(sum[:])
	}
	if got := r.Header.Get("x-amz-content-sha256"); got != want {
		b.t.Errorf("the payload's hash is %s, want %s", got, want)
	}
	if got, want := r.Header.Get("authorization"), b.signature(r); got != want {
		b.t.Errorf("signed\n%s, want\n%s", got, want)
	}
	if r.Header.Get("x-api-key") != "" || strings.Contains(r.Header.Get("anthropic-beta"), "fallback") {
		b.t.Errorf("headers %v", r.Header)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.URL.Path = strings.TrimPrefix(r.URL.Path, b.path)
	r.Header.Del("authorization")
	b.models.ServeHTTP(w, r)
}

// signature is what the request should be signed with.
func (b *bedrock) signature(r *http.Request) string {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("x-amz-date"))
	if err != nil || time.Since(at).Abs() > time.Minute {
		b.t.Errorf("signed at %q", r.Header.Get("x-amz-date"))
	}
	hash := r.Header.Get("x-amz-content-sha256")
	again, err := http.NewRequest(r.Method, "https://"+r.Host+r.URL.Path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	again.Header.Set("x-amz-content-sha256", hash)
	keys := aws.Credentials{AccessKeyID: awsID, SecretAccessKey: awsKey, SessionToken: awsToken}
	if err := v4.NewSigner().SignHTTP(b.t.Context(), keys, again, hash, b.service, b.region, at); err != nil {
		b.t.Fatal(err)
	}
	return again.Header.Get("authorization")
}

func TestBedrock(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ family, host, service, path string }{
		{"anthropic", "bedrock-mantle.us-east-1.api.aws", "bedrock-mantle", "/anthropic"},
		{"responses", "bedrock-runtime.us-east-1.amazonaws.com", "bedrock", "/openai"},
	} {
		t.Run(row.family, func(t *testing.T) {
			t.Parallel()
			s, err := fakemodel.New(fakemodel.Options{Identity: fakemodel.ByModel})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			to, err := url.Parse(strings.TrimSuffix(s.URL, "/v1"))
			if err != nil {
				t.Fatal(err)
			}
			reverse := httputil.NewSingleHostReverseProxy(to)
			reverse.FlushInterval = -1
			reverse.Transport = &http.Transport{DisableCompression: true}
			b := &bedrock{t: t, region: "us-east-1", service: row.service, path: row.path, models: reverse}
			far := modeltest.NewFar(t, row.host, b)
			h := newHost(t, "")
			h.set.Providers = []string{"f=" + row.family + ",https://" + row.host + row.path + "/v1"}
			h.env = append(far.Env, "AWS_ACCESS_KEY_ID="+awsID, "AWS_SECRET_ACCESS_KEY="+awsKey, "AWS_SESSION_TOKEN="+awsToken, "AWS_COPY="+awsKey)
			p := h.start()
			if got := p.ready.Providers["f"]; got.Auth != "sigv4" || got.Region != "us-east-1" || got.Credentials != "environment" || got.Unresolved != nil {
				t.Errorf("ready shows %+v", got)
			}
			k := p.dial()
			k.fbot("Ada", h.workspace, "shell")
			if err := os.WriteFile(filepath.Join(h.workspace, "keys"), []byte(awsID+" "+awsKey+" "+awsToken), 0o600); err != nil {
				t.Fatal(err)
			}
			s.Queue(fakemodel.Say("", fakemodel.Call("shell", `{"command":"cat keys; env > env"}`)), fakemodel.Say("Done."))
			k.follow("Ada", 0)
			sub := k.submit("Ada", "r1", "look & see <this>", "")
			seen := k.until("turn_finished", sub.Turn)
			if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "Done." {
				t.Fatalf("outcome %+v: %s", o, *o.Detail)
			}
			s.Verify(t)
			t.Run("PO-82 PO-83 PO-84 no AWS key reaches a shell or comes back from one", func(t *testing.T) {
				if items := k.itemsOf("Ada", seen); !strings.Contains(items, "[REDACTED] [REDACTED] [REDACTED]") || strings.Contains(items, awsKey) {
					t.Errorf("the result: %s", items)
				}
				env, err := os.ReadFile(filepath.Join(h.workspace, "env"))
				if err != nil || !bytes.Contains(env, []byte("PATH=")) || holdsAny(string(env), "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SESSION_TOKEN=", "AWS_COPY=", awsID, awsKey, awsToken) {
					t.Errorf("the shell's environment holds what it should not: %v", err)
				}
			})
			if asked := far.Asked(); !slices.Equal(asked, []string{row.host + ":443"}) {
				t.Errorf("asked for %v", asked)
			}
			for _, refusal := range []struct{ name, kind, code string }{
				{"PV-51 a refusal with the environment's keys is final", "AccessDeniedException", "provider_http_403"},
				{"the environment's keys have ended", "ExpiredTokenException", "provider_aws_credentials_expired"},
			} {
				t.Run(refusal.name, func(t *testing.T) {
					b.refuse.Store(&refusal.kind)
					before := b.asked.Load()
					o := k.run("Ada", refusal.kind, "again")
					if o.Status != "failed" || o.Error == nil || string(*o.Error) != refusal.code || !strings.Contains(*o.Detail, "refused, as [REDACTED] may not") {
						t.Errorf("outcome %+v, %v, %v", o, *o.Error, *o.Detail)
					}
					if n := b.asked.Load() - before; n != 1 {
						t.Errorf("asked %d times", n)
					}
				})
			}
			if strings.Contains(p.stderr.String(), awsKey) || strings.Contains(p.stderr.String(), awsID) {
				t.Error("PO-88 the log holds a key")
			}
		})
	}
}
