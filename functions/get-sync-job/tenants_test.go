package main

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/ids"
)

// TestTenants asks for every kind of job as every kind of caller.
func TestTenants(t *testing.T) {
	o := newOffice(t)
	home, stranger := o.tenant, o.Tenant(t)
	f := o.Instance()
	job := string(o.job(t, succeeded))
	o.tenant = stranger
	foreign := string(o.job(t, succeeded))
	resources := []struct {
		name, id string
		owner    ids.Account
		group    string // of those that cost the same calls
	}{
		{"own", job, home.ID, "a UUID"},
		{"another account's", foreign, stranger.ID, "a UUID"},
		{"unknown", string(ids.New[ids.Job]()), "", "a UUID"},
		{"a workspace's id", string(home.Workspace), "", "a UUID"},
		{"malformed", "urn:uuid:" + job, "", "no UUID"},
		{"empty", "", "", "no UUID"},
	}
	for _, c := range functest.Callers(t, home, stranger, home.Other(t)) {
		var absent functest.Indistinguishable
		for _, r := range resources {
			t.Run(c.Name+"/"+r.name, func(t *testing.T) {
				e := c.As(read(r.id))
				e.RequestID = "the same for all"
				got := f.Invoke(t, e)
				switch {
				case !c.LetIn(t, got):
				case !c.Manages:
					got.Refused(t, string(auth.ManagementKeyRequired))
				case r.owner != c.Account:
					if got.Is(t, http.StatusNotFound) {
						absent.Alike(t, r.group, got)
					}
				case got.Is(t, http.StatusOK):
					checkJob(t, got)
				}
			})
		}
	}
}

// Whatever a row holds, only its owner can tell it from one that is not there;
// the operator hears of it whoever asks.
func TestDamagedRows(t *testing.T) {
	o := newOffice(t)
	job, stranger, f := o.job(t, succeeded), o.Tenant(t), o.Instance()
	var absent functest.Indistinguishable
	ask := func(t testing.TB, id ids.Job, token string) functest.Answer {
		e := read(string(id)).As(token)
		e.RequestID = "the same for all"
		return f.Invoke(t, e)
	}
	absent.Alike(t, "", ask(t, ids.New[ids.Job](), stranger.Management))
	sound, err := o.DB.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &o.Engines.Tables.SyncJobs,
		Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "job#" + string(job)}}})
	if err != nil {
		t.Fatal(err)
	}
	unread := 0
	for _, d := range testkit.Damage(sound.Item) {
		t.Run(d.String(), func(t *testing.T) {
			if _, err := o.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &o.Engines.Tables.SyncJobs, Item: d.Row}); err != nil {
				t.Fatal(err)
			}
			foreign, own := ask(t, job, stranger.Management), ask(t, job, o.tenant.Management)
			absent.Alike(t, "", foreign)
			heard := own.Status == http.StatusInternalServerError
			if d.Attribute == "account" { // nobody's, or another account's
				absent.Alike(t, "", own)
				_, another := d.Value.(*types.AttributeValueMemberS)
				heard = !another
			} else if !heard {
				own.Is(t, http.StatusOK)
			}
			for _, a := range []functest.Answer{foreign, own} {
				if logged := a.Line["error"] != nil && a.Line["level"] == "ERROR"; logged != heard {
					t.Errorf("status %d, fault logged: %t, want %t", a.Status, logged, heard)
				}
			}
			if heard {
				unread++
			}
		})
	}
	if unread < 30 {
		t.Errorf("%d rows could not be read", unread)
	}
}
