package wire

import (
	"context"
	"net/http"

	"agent/internal/model"
)

// Credential is what a provider's requests are authorised with. It is safe for
// concurrent use, and no print of it shows a secret.
type Credential interface {
	// Authorize puts the credential into a request that is otherwise complete,
	// just before it is sent: after pacing and admission, so that what expires
	// is fresh. It may read the request's body through GetBody, and may take as
	// long as a renewal takes. Errors are *model.Error, or the cause of ctx's
	// end; the request is not sent then.
	Authorize(ctx context.Context, req *http.Request) error
	// Refused is told that the provider answered req with 401 or 403. It gives
	// the error to end the call with instead of the provider's own: with
	// provider_login_refreshed the call is made again at once. nil: the
	// provider's own stands.
	Refused(ctx context.Context, req *http.Request, status int) *model.Error
}

// key is a credential that never changes: what put writes into the headers. It
// is a closure, so that no print shows the key.
type key struct{ put func(http.Header) }

func (k key) Authorize(_ context.Context, req *http.Request) error {
	k.put(req.Header)
	return nil
}

func (key) Refused(context.Context, *http.Request, int) *model.Error { return nil }

// noCredential is a provider's that takes none.
var noCredential = key{put: func(http.Header) {}}
