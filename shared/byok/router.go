package byok

import (
	"context"
	"fmt"
	"time"

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

// Binding is the place of the credential. Its key must have been sealed for that place.
func (s Stored) Binding() seal.Binding { return s.binding() }

// ReadTime bounds one reading of a workspace. Supersede waits as long before it
// disables a credential, so a reading that missed the new one has ended by then.
const ReadTime = 2 * time.Second

// ReadAll reads the credentials of a workspace with their sealed keys from the
// credentials table, strongly consistent, in one Query and within ReadTime. If one page
// does not hold them all, the error is ErrTooMany. If a row is incomplete or names another
// place, the error is ErrUnreadable for the whole workspace: the row may hold a flag that
// restricts the others.
func ReadAll(ctx context.Context, db dynamodb.QueryAPIClient, table string, account ids.Account, w ids.Workspace) ([]Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, ReadTime)
	defer cancel()
	rows, err := readRows(ctx, db, queryOf(table, w), account, w, true)
	if err != nil {
		return nil, err
	}
	all := make([]Stored, len(rows))
	for i, row := range rows {
		all[i] = Stored{row.credential(), row.Seal}
	}
	return all, nil
}

// readRows returns the rows that a query of the workspace finds. It returns ErrUnreadable
// if a row cannot be decoded. If strict is set, it also does so for a row that is
// incomplete or not of this workspace and account, and returns ErrTooMany if they do not
// fit into one page.
func readRows(ctx context.Context, db dynamodb.QueryAPIClient, in *dynamodb.QueryInput, account ids.Account, w ids.Workspace, strict bool) ([]item, error) {
	var rows []item
	pages := dynamodb.NewQueryPaginator(db, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err == nil && strict && page.LastEvaluatedKey != nil {
			err = ErrTooMany
		}
		if err != nil {
			return nil, fmt.Errorf("reading credentials: %w", err)
		}
		for _, stored := range page.Items {
			var row item
			if err := attributevalue.UnmarshalMap(stored, &row); err != nil || strict && (!isWhole(stored) || !row.isOf(account, w)) {
				return nil, fmt.Errorf("workspace %s: %w", w, ErrUnreadable)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// isOf reports whether the row is sound and belongs to this workspace of the account.
func (i item) isOf(account ids.Account, w ids.Workspace) bool {
	return i.isSound() && i.Account == account && i.Workspace == w
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
