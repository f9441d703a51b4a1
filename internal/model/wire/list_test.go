package wire_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agent/internal/model"
	"agent/internal/model/modeltest"
	"agent/internal/model/wire"
)

func TestListingIsKept(t *testing.T) {
	t.Parallel()
	t.Run("PV-63 ten askers cause one request and get equal errors", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var l wire.Listing
			asked := 0
			fetch := func(ctx context.Context) ([]model.Model, error) {
				asked++
				time.Sleep(time.Second)
				return nil, model.Errorf("provider_connection_failed", "down")
			}
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					if _, err := l.Get(t.Context(), fetch); err == nil || err.Error() != "provider_connection_failed: down" {
						t.Errorf("PV-63: got %v", err)
					}
				})
			}
			wg.Wait()
			time.Sleep(4 * time.Minute)
			l.Get(t.Context(), fetch)
			if asked != 1 {
				t.Errorf("PV-63: asked %d times in five minutes", asked)
			}
			time.Sleep(2 * time.Minute)
			l.Get(t.Context(), fetch)
			if asked != 2 {
				t.Errorf("asked %d times", asked)
			}
		})
	})
}

func TestAListHasTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l wire.Listing
		began := time.Now()
		_, err := l.Get(t.Context(), func(ctx context.Context) ([]model.Model, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if code, _ := modeltest.Code(err); code != "provider_models_deadline" || time.Since(began) != 10*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

// What a list says beside a model's id is never worth the list.
func TestAListWithOddEntries(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		fmt.Fprint(w, `{"data":[{"id":7},"x",null,{"id":{}},[1],{"slug":"b","name":1,"meta":3,"top_provider":"x","visibility":0,"created":"no"},{"id":"a","context_length":9}],"has_more":"?","last_id":1}`)
	})
	got, err := client(t, s.URL).ListModels(t.Context(), wire.List{})
	if want := []model.Model{{ID: "b"}, {ID: "a", ContextTokens: 9}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestListLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body, code string
		status           int
	}{
		{"more than 8 MiB", `{"data":[]}` + strings.Repeat(" ", 9<<20), "provider_models_limit", 200},
		{"a result over 1 MiB", `{"data":[` + strings.TrimSuffix(strings.Repeat(`{"id":"`+strings.Repeat("x", 1000)+`"},`, 1200), ",") + `]}`, "provider_models_limit", 200},
		{"no JSON", `hello`, "invalid_provider_response", 200},
		{"no list", `{}`, "invalid_provider_response", 200},
		{"a refusal", `{"error":{"message":"no sk-0123456789abcdef"}}`, "provider_http_403", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			_, err := client(t, s.URL).ListModels(t.Context(), wire.List{})
			if code, detail := modeltest.Code(err); code != c.code || strings.Contains(detail, "sk-") {
				t.Errorf("got %v", err)
			}
		})
	}
}
