package contract_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

// once returns a request under the idempotency key of the suite.
func (n tenant) once(body string) request {
	return post(body).As(n.management).Idempotent(idempotencyKey)
}

// replays fails the test unless got repeats the first response.
func replays(t *testing.T, got, first response) {
	t.Helper()
	if string(got.Is(t, http.StatusCreated).Body) != string(first.Body) {
		t.Errorf("got %s, want the first response %s", got.Body, first.Body)
	}
	if v := got.Header.Values("Idempotent-Replayed"); !slices.Equal(v, []string{"true"}) {
		t.Errorf("Idempotent-Replayed is %q on a replay", v)
	}
}

// fresh fails the test unless the response is a new credential.
func fresh(t *testing.T, got response) response {
	t.Helper()
	if v, found := got.Is(t, http.StatusCreated).Header["Idempotent-Replayed"]; found {
		t.Errorf("Idempotent-Replayed is %q on a first response", v)
	}
	return got
}

// TestReplay: a body with the same values is the same request.
func TestReplay(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	body := bodyWith(`,"name":"one","disabled":true`)
	first := fresh(t, n.once(body).Do(t))
	respelt := `{"disabled": true,` + "\n" + `"name":"\u006fne","provider":"openai","key":"` + providerKey + `"}`
	for _, same := range []string{body, respelt} {
		replays(t, n.once(same).Do(t), first)
	}
	for _, other := range []string{
		strings.Replace(body, providerKey, providerKey+"x", 1), strings.Replace(body, "one", "two", 1),
		bodyWith(`,"name":"one"`), bodyWith(`,"name":"one","disabled":true,"is_required":false`),
	} {
		n.once(other).Do(t).Refuses(t, "")
	}
	if got := post(bodyWith("")).As(n.management).Do(t).Created(t).SortOrder; got != 1 {
		t.Errorf("the next credential is at %d, want 1", got)
	}
}

// TestReplayScope: an idempotency key belongs to the API key that sent it.
func TestReplayScope(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	first := fresh(t, n.once(bodyWith("")).Do(t))
	second := fresh(t, n.once(bodyWith("")).As(n.ManagementKey(t)).Do(t))
	if first.Created(t).ID == second.Created(t).ID {
		t.Error("two API keys share one remembered response")
	}
	n.once(bodyWith("")).As(n.standard).Do(t).Is(t, http.StatusForbidden)
}

// TestOnlySuccessIsRemembered: after a 400 the idempotency key is free.
func TestOnlySuccessIsRemembered(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.once(bodyWith(`,"workspace_id":"`+unknownJob+`"`)).Do(t).Refuses(t, "/workspace_id")
	n.once(bodyWith(`,"name":1`)).Do(t).Refuses(t, "/name")
	fresh(t, n.once(bodyWith("")).Do(t))
}

// TestReplayOrder: the request's own syntax comes first, then replay, then storage. A disabled key replays nothing.
func TestReplayOrder(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	body := bodyWith(`,"workspace_id":"` + n.second + `"`)
	first := fresh(t, n.once(body).Do(t))
	n.DeleteWorkspace(t, ids.Workspace(n.second))
	replays(t, n.once(body).Do(t), first)
	post(body).As(n.management).Do(t).Refuses(t, "/workspace_id")
	n.once(body).With("Content-Type", "text/plain").Do(t).Refuses(t, "")
	n.Disable(t, n.management)
	n.once(body).Do(t).Because(t, "disabled")
}

// TestIdempotencyKey sends values that the gateway could change, join or lose.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	for name, c := range map[string]struct {
		values []string
		valid  bool
	}{
		"longest":            {[]string{strings.Repeat("~", 255)}, true},
		"quoted, comma":      {[]string{`"a,b"`}, true},
		"empty":              {[]string{""}, false},
		"tab inside":         {[]string{"a\tb"}, false},
		"not ASCII":          {[]string{"clé"}, false},
		"sent twice":         {[]string{"a", "b"}, false},
		"sent twice, alike":  {[]string{"a", "a"}, false},
		"sent twice, second": {[]string{"a", ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := post(bodyWith("")).As(n.management).With("Idempotency-Key", c.values...).Do(t)
			if c.valid {
				fresh(t, r)
			} else {
				r.Refuses(t, "")
			}
		})
	}
}

// TestCreatesAtOnceUnderOneKey: 200 clients with one idempotency key get one credential;
// each gets a 201.
func TestCreatesAtOnceUnderOneKey(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	firsts, bodies := 0, map[string]bool{}
	responses, _ := atOnce(t, 200, func(int) request { return n.once(bodyWith("")) })
	for _, r := range responses {
		bodies[string(r.Is(t, http.StatusCreated).Body)] = true
		if _, replayed := r.Header["Idempotent-Replayed"]; !replayed {
			firsts++
		}
	}
	if len(bodies) != 1 || firsts != 1 {
		t.Errorf("got %d different responses, %d of them first ones, want 1 and 1", len(bodies), firsts)
	}
}

// TestItemsExpire: a limiter item and an idempotency record expire, by the
// attribute of the table's TTL, and not before the contract allows.
func TestItemsExpire(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	began := time.Now()
	n.once(bodyWith("")).Do(t).Is(t, http.StatusCreated)
	del("file_unknown").As(n.management).Do(t).Is(t, http.StatusNotFound)
	ttl, err := n.DynamoDB.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &n.Control})
	testkit.Must(t, err)
	attribute := aws.ToString(ttl.TimeToLiveDescription.AttributeName)
	control := testkit.Rows{DB: n.DynamoDB, Table: n.Control}
	items := []testkit.Row{
		control.Get(t, testkit.Key(string(byok.NewRequestID(hashOf(n.management), idempotencyKey)))),
		control.Get(t, testkit.Key("limit#delete-file#"+hashOf(n.management))),
	}
	least := map[string]time.Duration{"limit": time.Minute / time.Duration(the.perMinute), "idem": 24 * time.Hour}
	for _, item := range items {
		kind, _, _ := strings.Cut(testkit.TextOf(item, "pk"), "#")
		expires, ok := item[attribute].(*types.AttributeValueMemberN)
		if !ok {
			t.Fatalf("an item of %s# has no %q", kind, attribute)
		}
		seconds, err := strconv.ParseInt(expires.Value, 10, 64)
		// Two hours of margin: milliseconds, or no end at all, would be far more.
		if left := time.Unix(seconds, 0).Sub(began); err != nil || left < least[kind] || left > least[kind]+2*time.Hour {
			t.Errorf("an item of %s# expires in %s, want %s (%v)", kind, left, least[kind], err)
		}
	}
}
