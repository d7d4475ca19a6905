package byok

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// Stored is a credential with its sealed key, as the platform's router reads it.
type Stored struct {
	Credential
	Sealed seal.Sealed
}

// Binding is what the key must have been sealed for: the place at which the
// credential was found.
func (s Stored) Binding() seal.Binding { return s.binding() }

// ReadAll reads the credentials of a workspace with their sealed keys from the
// credentials table of that name, strongly consistent, in one Query for every
// megabyte. A row that cannot be read whole, or that names another place than its
// own, is ErrUnreadable for the whole workspace: it may hold a flag that forbids what
// the others allow.
func ReadAll(ctx context.Context, db dynamodb.QueryAPIClient, table string, account ids.Account, w ids.Workspace) ([]Stored, error) {
	rows, err := readRows(ctx, db, queryOf(table, w), account, w)
	if err != nil {
		return nil, err
	}
	all := make([]Stored, len(rows))
	for i, row := range rows {
		all[i] = Stored{row.credential(), row.sealed()}
	}
	return all, nil
}

// ReadSettings reads the credentials of a workspace as ReadAll does, in the order
// of List, without their sealed keys.
func (m *Manager) ReadSettings(ctx context.Context, account ids.Account, w ids.Workspace) ([]Credential, error) {
	in := queryOf(m.table, w)
	projection, names := project(append(shown(), "pk", "sk", "v")...)
	in.ProjectionExpression, in.ExpressionAttributeNames = &projection, names
	rows, err := readRows(ctx, m.db, in, account, w)
	if err != nil {
		return nil, err
	}
	credentials := make([]Credential, len(rows))
	for i, row := range rows {
		credentials[i] = row.credential()
	}
	slices.SortFunc(credentials, inOrder)
	return credentials, nil
}

// readRows returns what a query of the workspace finds, or ErrUnreadable.
func readRows(ctx context.Context, db dynamodb.QueryAPIClient, in *dynamodb.QueryInput, account ids.Account, w ids.Workspace) ([]item, error) {
	var rows []item
	pages := dynamodb.NewQueryPaginator(db, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		for _, stored := range page.Items {
			var row item
			err := attributevalue.UnmarshalMap(stored, &row)
			if err != nil || !isWhole(stored) || row.ID == "" || row.Provider == "" || row.Version != itemVersion || row.Account != account || row.Workspace != w ||
				row.PK != partition(w) || row.SK != sortKey(row.ID) {
				return nil, fmt.Errorf("workspace %s: %w", w, ErrUnreadable)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// isWhole reports whether a row has every attribute that decides about a request.
// A missing flag would be read as false, and a missing list as one that restricts
// nothing.
func isWhole(stored map[string]types.AttributeValue) bool {
	for _, name := range []string{"disabled", "is_byok_only", "is_fallback", "is_required"} {
		if _, ok := stored[name].(*types.AttributeValueMemberBOOL); !ok {
			return false
		}
	}
	for _, name := range []string{"allowed_api_key_hashes", "allowed_models", "allowed_user_ids"} {
		switch list := stored[name].(type) {
		case *types.AttributeValueMemberNULL:
		case *types.AttributeValueMemberL:
			for _, element := range list.Value {
				if _, ok := element.(*types.AttributeValueMemberS); !ok {
					return false
				}
			}
		default:
			return false
		}
	}
	_, ok := stored["sort_order"].(*types.AttributeValueMemberN)
	return ok
}
