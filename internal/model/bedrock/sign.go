package bedrock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"agent/internal/model"
	"agent/internal/model/wire"
	"agent/internal/secret"
)

const (
	hashHeader = "X-Amz-Content-Sha256"
	unsigned   = "UNSIGNED-PAYLOAD"
)

// Credential signs the requests of one provider. It is safe for concurrent use.
type Credential struct {
	secret.Hidden
	keys   *Keys
	host   string
	at     model.BedrockHost
	signer *v4.Signer
}

var _ wire.Credential = (*Credential)(nil)

// New makes the credential of a spec, which must be of a Bedrock host, by https
// and at the usual port: invalid_provider_url.
func New(spec model.Spec, keys *Keys) (*Credential, error) {
	c := &Credential{keys: keys, host: spec.Host(), signer: v4.NewSigner()}
	var ok bool
	c.at, ok = model.ParseBedrockHost(c.host)
	u, err := url.Parse(spec.URL)
	if err != nil || !ok || !c.mayGo(u) {
		return nil, model.Errorf("invalid_provider_url", "provider %s: a Bedrock host is reached by https and without a port", spec.Name)
	}
	return c, nil
}

// mayGo reports whether a URL is the host's own: nothing else is signed for.
func (c *Credential) mayGo(u *url.URL) bool {
	return u.Scheme == "https" && u.Host == c.host
}

// Authorize signs a request. It reads the body once more for its digest where
// the host wants one.
func (c *Credential) Authorize(ctx context.Context, req *http.Request) error {
	if !c.mayGo(req.URL) {
		return model.Errorf("invalid_provider_url", "a request to %s is not signed: it is not %s", req.URL.Host, c.host)
	}
	keys, err := c.keys.get(ctx)
	if err != nil {
		return err
	}
	hash := unsigned
	if !c.at.Mantle {
		if hash, err = digest(req); err != nil {
			return err
		}
	}
	return c.sign(ctx, req, keys, hash, c.keys.now())
}

// sign adds the signature of host, date and payload, and of the session token
// where there is one. Other headers are not signed: the transport adds some of
// its own.
func (c *Credential) sign(ctx context.Context, req *http.Request, keys *pair, hash string, now time.Time) error {
	service := "bedrock"
	if c.at.Mantle {
		service = "bedrock-mantle"
	}
	bare := &http.Request{Method: req.Method, URL: req.URL, Host: c.host, Header: http.Header{hashHeader: {hash}}}
	err := c.signer.SignHTTP(ctx, aws.Credentials{
		AccessKeyID: keys.id.Reveal(), SecretAccessKey: keys.key.Reveal(), SessionToken: keys.token.Reveal(),
	}, bare, hash, service, c.at.Region, now.UTC())
	if err != nil {
		return fmt.Errorf("sign the request: %w", err)
	}
	for name, values := range bare.Header {
		req.Header[name] = values
	}
	return nil
}

// digest is the SHA-256 of the body, which GetBody reads a first time here.
func digest(req *http.Request) (string, error) {
	sum := sha256.New()
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return "", err
		}
		defer body.Close()
		if _, err := io.Copy(sum, body); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Refused has keys of the aws command asked for once more. Those of the
// environment are what they are: the provider's own error stands.
func (c *Credential) Refused(ctx context.Context, req *http.Request, _ int) *model.Error {
	used := func(p *pair) bool {
		return strings.Contains(req.Header.Get("Authorization"), " Credential="+p.id.Reveal()+"/") &&
			req.Header.Get("X-Amz-Security-Token") == p.token.Reveal()
	}
	if !c.keys.renew(ctx, used) {
		return nil
	}
	return model.Errorf("provider_login_refreshed", "the AWS keys were renewed")
}
