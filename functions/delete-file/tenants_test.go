package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/infra/testkit/functest"
	"signalbox.dev/shared/ids"
)

// resource is a file that a request means: where it lies, and how it is named.
type resource struct {
	name  string
	lies  ids.Workspace // "" where there is no file
	named string        // as workspace_id; "" where none is
	file  string        // as file_id; "" for its id
}

// register are the live workspaces, and whose they are.
type register map[ids.Workspace]ids.Account

// TestTenants asks for the deletion of every kind of file as every kind of
// caller.
func TestTenants(t *testing.T) {
	s := functest.New(t, assemble)
	c := newCabinet(t, s, off)
	home, stranger := s.Tenant(t), s.Tenant(t)
	other, gone := home.Other(t), home.Deleted(t)
	f := c.Instance()
	live := register{home.Workspace: home.ID, other: home.ID, stranger.Workspace: stranger.ID}
	resources := []resource{
		{name: "in the default workspace", lies: home.Workspace, named: string(home.Workspace)},
		{name: "in the default workspace, unnamed", lies: home.Workspace},
		{name: "in the other workspace", lies: other, named: string(other)},
		{name: "in the other workspace, unnamed", lies: other},
		{name: "in the other workspace, the default named", lies: other, named: string(home.Workspace)},
		{name: "another account's", lies: stranger.Workspace, named: string(stranger.Workspace)},
		{name: "another account's, unnamed", lies: stranger.Workspace},
		{name: "another account's, the default named", lies: stranger.Workspace, named: string(home.Workspace)},
		{name: "in a deleted workspace", lies: gone, named: string(gone)},
		{name: "unknown", named: string(home.Workspace)},
		{name: "malformed", lies: home.Workspace, named: string(home.Workspace), file: "file_%2e%2e"},
		{name: "in an unknown workspace", named: string(ids.New[ids.Workspace]())},
		{name: "in a malformed workspace", lies: home.Workspace, named: "{" + string(home.Workspace) + "}"},
	}
	for _, caller := range functest.Callers(t, home, stranger, other) {
		var absences functest.Indistinguishable
		for _, r := range resources {
			t.Run(caller.Name+"/"+r.name, func(t *testing.T) { c.ask(t, f, caller, r, live, &absences) })
		}
	}
}

// ask asks for the deletion of a new file of the kind, twice.
func (c *cabinet) ask(t *testing.T, f *functest.Instance, caller functest.Caller, r resource, live register, absences *functest.Indistinguishable) {
	file := ids.NewFile()
	if r.lies != "" {
		c.put(t, r.lies, file, newest)
	}
	given := r.file
	if given == "" {
		given = string(file)
	}
	e := caller.As(remove(ids.Workspace(r.named), given))
	e.RequestID = "the same for all"
	got := f.Invoke(t, e)
	left := c.look(t, r.lies, file).left
	if !caller.LetIn(t, got) {
		if r.lies != "" && left != 1 {
			t.Error("somebody who was not let in deleted it")
		}
		return
	}
	meant, group := r.meantBy(caller, live)
	if meant {
		got.Is(t, done)
		got, left = f.Invoke(t, e), left+1 // deleted: again it is as if it had never been
	}
	if got.Is(t, absent) {
		absences.Alike(t, group, got)
	}
	if r.lies != "" && left != 1 {
		t.Errorf("%d versions are left", left)
	}
}

// meantBy reports whether the caller means the file where it lies, and may; and
// the group of those that cost the same calls to find out.
func (r resource) meantBy(c functest.Caller, live register) (meant bool, group string) {
	workspace, shaped := ids.Parse[ids.Workspace](r.named)
	group = "named"
	if r.named == "" {
		shaped, group = true, "unnamed"
		if workspace = c.Bound; workspace == "" {
			workspace = c.Default
		}
	}
	switch {
	case !shaped || r.file != "":
		return false, "malformed"
	case !c.Reaches(live[workspace], workspace):
		return false, "out of reach" // where nothing is looked for
	}
	return r.lies == workspace, group
}

// Whatever a workspace's row holds, only those who reach it can tell it from one
// that is not there; the operator hears of it whoever asks.
func TestDamagedRows(t *testing.T) {
	s := functest.New(t, assemble)
	c := newCabinet(t, s, off)
	home, stranger := s.Tenant(t), s.Tenant(t)
	workspace, f := home.Other(t), c.Instance()
	var absences functest.Indistinguishable
	ask := func(t testing.TB, w ids.Workspace, token string) functest.Answer {
		e := remove(w, "file_a").As(token).Limited("1000000", "100000")
		e.RequestID = "the same for all"
		return f.Invoke(t, e)
	}
	outside := []string{stranger.Management, home.Standard(t, home.Workspace)}
	absences.Alike(t, "", ask(t, ids.New[ids.Workspace](), outside[0]))
	key := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "workspace#" + string(workspace)}, "sk": &types.AttributeValueMemberS{Value: "workspace"},
	}
	sound, err := s.DB.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.Engines.Tables.Access, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	sound.Item["deleted_at"] = &types.AttributeValueMemberN{Value: "1"}
	unread := 0
	for _, d := range testkit.Damage(sound.Item) {
		t.Run(d.String(), func(t *testing.T) {
			if _, err := s.DB.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.Engines.Tables.Access, Item: d.Row}); err != nil {
				t.Fatal(err)
			}
			own := ask(t, workspace, home.Management)
			heard := own.Status == failed
			if d.Attribute == "account" { // nobody's, or another account's
				absences.Alike(t, "", own)
				_, another := d.Value.(*types.AttributeValueMemberS)
				heard = !another
			} else if !heard {
				own.Is(t, absent)
			}
			answers := []functest.Answer{own}
			for _, token := range outside {
				got := ask(t, workspace, token)
				absences.Alike(t, "", got)
				answers = append(answers, got)
			}
			for _, a := range answers {
				if logged := a.Line["error"] != nil && a.Line["level"] == "ERROR"; logged != heard {
					t.Errorf("status %d, fault logged: %t, want %t", a.Status, logged, heard)
				}
			}
			if heard {
				unread++
			}
		})
	}
	if unread < 20 {
		t.Errorf("%d rows could not be read", unread)
	}
}
