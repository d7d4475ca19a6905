package byok_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit/faults"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// removal is a vault with another sealing key to move to.
type removal struct {
	*vault
	*byok.Wrappings
	kms  *kms.Client // meets no faults
	next string
}

func newRemoval(t *testing.T) *removal {
	t.Helper()
	v := newVault(t)
	config := v.engines.Config
	config.HTTPClient = v.broken
	r := &removal{vault: v, kms: kms.NewFromConfig(v.engines.Config),
		Wrappings: byok.NewWrappings(dynamodb.NewFromConfig(config), v.engines.Tables.Credentials)}
	r.next = r.newKey()
	return r
}

func (r *removal) newKey() string {
	r.Helper()
	made, err := r.kms.CreateKey(r.Context(), &kms.CreateKeyInput{})
	if err != nil {
		r.Fatal(err)
	}
	r.trusted = append(r.trusted, aws.ToString(made.KeyMetadata.Arn))
	return aws.ToString(made.KeyMetadata.Arn)
}

// to moves records of the vault's key, through the faults.
func (r *removal) to(key string) *seal.Rewrapper {
	config := r.engines.Config
	config.HTTPClient = r.broken
	return seal.NewRewrapper(kms.NewFromConfig(config), key, r.engines.KeyARN)
}

// wrappings are those of the vault's workspace; other tests use the same table.
func (r *removal) wrappings() (own []byok.Wrapping) {
	r.Helper()
	const segments = 3
	for segment := range int32(segments) {
		for page, err := range r.Pages(r.Context(), segment, segments) {
			if err != nil {
				r.Fatal(err)
			}
			for _, w := range page {
				if w.Workspace == r.workspace {
					own = append(own, w)
				}
			}
		}
	}
	return own
}

// one stores a credential and reads its wrapping.
func (r *removal) one() byok.Wrapping {
	r.Helper()
	c := r.create()
	for _, w := range r.wrappings() {
		if w.ID == c.ID {
			r.broken.Heal()
			return w
		}
	}
	r.Fatalf("credential %s is not among the wrappings", c.ID)
	return byok.Wrapping{}
}

// under is the key that a credential is sealed under now.
func (r *removal) under(id ids.Credential) string {
	r.Helper()
	credentials, seals, err := r.Stored(r.Context(), r.db, r.workspace)
	if err != nil {
		r.Fatal(err)
	}
	for i, c := range credentials {
		if c.ID == id {
			return seals[i].KeyARN
		}
	}
	return ""
}

func TestPagesShowEachWrappingOnceAndNoSecret(t *testing.T) {
	r := newRemoval(t)
	want := map[ids.Credential]string{}
	for range 60 { // more than a page
		want[r.create().ID] = r.engines.KeyARN
	}
	got := map[ids.Credential]string{}
	for _, w := range r.wrappings() {
		if got[w.ID] != "" {
			t.Errorf("%s is there twice", w.ID)
		}
		got[w.ID] = w.KeyARN
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, c := range r.broken.Calls() {
		if c.Operation != "Scan" {
			continue
		}
		asked := map[string]bool{}
		for _, name := range c.Input["ExpressionAttributeNames"].(map[string]any) {
			asked[name.(string)] = true
		}
		if !asked["wrapped_key"] || asked["nonce"] || asked["ciphertext"] || c.Input["ConsistentRead"] != true || c.Input["Limit"] != 50.0 {
			t.Errorf("a page asks for %v", c.Input)
		}
	}
}

func TestAWalkThatCannotGoOnSaysSo(t *testing.T) {
	r := newRemoval(t)
	r.broken.Inject(faults.Rule{Operation: "Scan", Fault: faults.Refuse()})
	pages := 0
	for page, err := range r.Pages(t.Context(), 0, 1) {
		if pages++; err == nil || page != nil || pages > 1 {
			t.Errorf("page %d: %d wrappings, %v", pages, len(page), err)
		}
	}
}
