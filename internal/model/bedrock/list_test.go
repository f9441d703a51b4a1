package bedrock_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agent/internal/model"
	"agent/internal/model/anthropic"
	"agent/internal/model/bedrock"
	"agent/internal/model/modeltest"
	"agent/internal/model/responses"
	"agent/internal/model/wire"
	"agent/internal/secret"
)

// Mantle has one list, whatever the family.
func TestMantleListsItsModels(t *testing.T) {
	t.Parallel()
	for family, path := range map[model.Family]string{model.FamilyAnthropic: "/anthropic/v1", model.FamilyResponses: "/openai/v1"} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			const host = "bedrock-mantle.eu-west-1.api.aws"
			far := modeltest.NewFar(t, host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.String() != "/v1/models" || r.Host != host || r.ProtoMajor != 2 ||
					!strings.HasPrefix(r.Header.Get("authorization"), "AWS4-HMAC-SHA256 Credential=AKID-OF-THE-TEST/") ||
					!strings.Contains(r.Header.Get("authorization"), "/eu-west-1/bedrock-mantle/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, ") {
					t.Errorf("asked for %s of %s with %s", r.URL, r.Host, r.Header.Get("authorization"))
				}
				w.Header().Set("content-type", "application/json")
				io.WriteString(w, `{"data":[{"id":"a"},{"id":"b"}],"has_more":true,"last_id":"b"}`)
			}))
			env := modeltest.Env(t, nil)
			env.Transports = wire.NewTransports(wire.Options{Connections: 1, Proxy: http.ProxyURL(far.Proxy), RootCAs: far.CAs})
			t.Cleanup(env.Transports.CloseIdle)
			vars := map[string]string{"AWS_ACCESS_KEY_ID": "AKID-OF-THE-TEST", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test"}
			keys := bedrock.Open(func(name string) string { return vars[name] }, func(...secret.Named) {}, nil, time.Minute)
			env.Credential = func(s model.Spec) (wire.Credential, error) { return bedrock.New(s, keys) }
			spec := model.Spec{Name: "b", Family: family, Transport: model.TransportHTTP, URL: "https://" + host + path, Auth: model.AuthSigV4}
			var p model.Provider
			var err error
			if family == model.FamilyAnthropic {
				p, err = anthropic.New("b", spec, env)
			} else {
				p, err = responses.New("b", spec, env)
			}
			if err != nil {
				t.Fatal(err)
			}
			models, err := p.Models(t.Context())
			if err != nil || len(models) != 2 || models[1].ID != "b" {
				t.Errorf("got %+v, %v", models, err)
			}
		})
	}
}
