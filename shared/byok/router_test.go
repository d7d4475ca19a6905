package byok_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/infra/test/kit"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// oneRow is a credentials table that returns the same row for every query.
type oneRow struct {
	*dynamodb.Client
	row kit.Row
}

func (o oneRow) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return &dynamodb.QueryOutput{Items: []kit.Row{o.row}}, nil
}

func (o oneRow) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return &dynamodb.ScanOutput{Items: []kit.Row{o.row}}, nil
}

// If a row lacks a flag or a list, a router must not treat it as one without restrictions.
// A row that names another workspace or id may have been moved here.
func TestADamagedRowIsNotUsed(t *testing.T) {
	f := newFixture(t)
	c := f.newCredential()
	var sound kit.Row
	f.rewriteRow(func(row kit.Row) { sound = row })
	check := func(what string, row kit.Row, want error) {
		t.Helper()
		table := oneRow{row: row}
		_, all := byok.ReadAll(t.Context(), table, "t", f.account, f.workspace)
		_, settings := byok.NewManager(table, "t").ReadSettings(t.Context(), f.account, f.workspace)
		if !errors.Is(all, want) || !errors.Is(settings, want) {
			t.Errorf("%s: %v; without seals %v; want %v", what, all, settings, want)
		}
		surveyed, err := byok.Survey(t.Context(), table, "t")
		if err != nil || len(surveyed) != 1 || surveyed[0].ID != c.ID && row["sk"] == sound["sk"] {
			t.Fatalf("%s: surveyed as %+v, %v", what, surveyed, err)
		}
		// A survey expects no account and no workspace.
		foreign := strings.HasPrefix(what, "row ") || strings.HasPrefix(what, "account ")
		if !foreign && surveyed[0].Damaged != (want != nil) {
			t.Errorf("%s: surveyed as %+v", what, surveyed[0])
		}
	}
	check("nothing", sound, nil)
	// The names of attributes must not change, because existing rows have them. Settings
	// have the names of the API, which cannot change.
	settings := maps.Keys(maps.Collect(byok.Settings{}.ByName()))
	for _, name := range slices.AppendSeq(strings.Fields("account created_at id label pk seal sk sort_order v workspace"), settings) {
		if sound[name] == nil {
			t.Errorf("no attribute %s is stored", name)
		}
	}
	sealed := sound["seal"].(*types.AttributeValueMemberM).Value
	if names := slices.Sorted(maps.Keys(sealed)); !slices.Equal(names, []string{"ciphertext", "format", "key_arn", "nonce", "wrapped_key"}) {
		t.Errorf("a seal is stored as %q", names)
	}
	for what, values := range map[string]kit.Row{
		"pk of another workspace":  {"pk": kit.Text("workspace#" + string(ids.New[ids.Workspace]()))},
		"sk of another credential": {"sk": kit.Text("credential#" + string(ids.New[ids.Credential]()))},
		"id that is empty":         {"id": kit.Text(""), "sk": kit.Text("credential#")},
		"provider that is empty":   {"provider": kit.Text("")},
		"row of another workspace": {"workspace": kit.Text("w"), "pk": kit.Text("workspace#w")},
		"list of null":             {"allowed_models": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberNULL{Value: true}}}},
	} {
		row := maps.Clone(sound)
		maps.Copy(row, values)
		check(what, row, calls.ErrDamaged)
	}
	const list, flag = "*types.AttributeValueMemberL *types.AttributeValueMemberNULL", "*types.AttributeValueMemberBOOL"
	harmless := map[string]string{ // the other types that such an attribute may have
		"id": "", "v": "", "account": "", "workspace": "", "provider": "*types.AttributeValueMemberS *types.AttributeValueMemberN", "sort_order": "*types.AttributeValueMemberN",
		"disabled": flag, "is_byok_only": flag, "is_fallback": flag, "is_required": flag,
		"allowed_models": list, "allowed_user_ids": list, "allowed_api_key_hashes": list,
	}
	for _, damaged := range kit.Damage(sound) {
		types, decides := harmless[damaged.Attribute]
		switch {
		case !decides:
		case slices.Contains(strings.Fields(types), fmt.Sprintf("%T", damaged.Value)):
			check(damaged.String(), damaged.Row, nil)
		default:
			check(damaged.String(), damaged.Row, calls.ErrDamaged)
		}
	}
}
