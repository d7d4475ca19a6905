//go:build !lambda

package byok

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/calls"
	"signalbox.dev/shared/ids"
)

// surveyPage is how many rows one Scan reads at most; DynamoDB ends a page at 1 MB.
const surveyPage = 500

// scan yields these attributes of all rows of the table, page by page, strongly
// consistent. It ends after an error.
func scan(ctx context.Context, db dynamodb.ScanAPIClient, in *dynamodb.ScanInput, attributes ...string) iter.Seq2[[]stored, error] {
	projection, names := project(attributes...)
	in.ConsistentRead, in.ProjectionExpression, in.ExpressionAttributeNames = aws.Bool(true), &projection, names
	pages := dynamodb.NewScanPaginator(db, in)
	return func(yield func([]stored, error) bool) {
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("reading table %s: %w", *in.TableName, err))
				return
			}
			rows := make([]stored, len(page.Items))
			for i, item := range page.Items {
				rows[i] = decode(item)
			}
			if !yield(rows, nil) {
				return
			}
		}
	}
}

// Placement is the position of a stored credential in its workspace and provider.
// If it is unreadable, or lacks an attribute that a router needs, only Workspace and ID are
// certain.
type Placement struct {
	Workspace ids.Workspace
	ID        ids.Credential
	Account   ids.Account
	Provider  string
	SortOrder int64
	// AllowedAPIKeyHashes is nil if every API key may use the credential.
	AllowedAPIKeyHashes []ids.KeyHash
	Unreadable          bool
}

// Survey reads the placement of every credential in the credentials table. It reads no
// seal. It changes nothing.
func Survey(ctx context.Context, db dynamodb.ScanAPIClient, table string) ([]Placement, error) {
	var placements []Placement
	in := &dynamodb.ScanInput{TableName: &table, Limit: aws.Int32(surveyPage)}
	for rows, err := range scan(ctx, db, in, shown()...) {
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			workspace, id := row.ids()
			placements = append(placements, Placement{workspace, id, row.Account, row.Provider, row.SortOrder, row.AllowedAPIKeyHashes, !row.readable || !row.whole})
		}
	}
	return placements, nil
}

// stored is a row as it was read. If it is not readable, only its key is certain.
type stored struct {
	item
	readable bool
	whole    bool // see isWhole
}

func decode(row map[string]types.AttributeValue) (s stored) {
	if attributevalue.UnmarshalMap(row, &s.item) == nil {
		s.readable, s.whole = s.isSound(), isWhole(row)
		return s
	}
	s.item = item{} // the decoder may have set any field
	_ = attributevalue.UnmarshalMap(map[string]types.AttributeValue{"pk": row["pk"], "sk": row["sk"]}, &s.item)
	return s
}

// ids are the workspace and the id in the row's key.
func (i item) ids() (ids.Workspace, ids.Credential) {
	return ids.Workspace(strings.TrimPrefix(i.PK, partition(""))), ids.Credential(strings.TrimPrefix(i.SK, sortKey("")))
}

// project makes the projection of these attributes. A "." separates the parts of a
// path. Some names are reserved words of DynamoDB, so each one has an alias.
func project(paths ...string) (expression string, names map[string]string) {
	names = map[string]string{}
	aliases := map[string]string{}
	var wanted []string
	for _, path := range paths {
		var parts []string
		for part := range strings.SplitSeq(path, ".") {
			if aliases[part] == "" {
				aliases[part] = "#a" + strconv.Itoa(len(aliases))
				names[aliases[part]] = part
			}
			parts = append(parts, aliases[part])
		}
		wanted = append(wanted, strings.Join(parts, "."))
	}
	return strings.Join(wanted, ", "), names
}

func primaryKey(w ids.Workspace, id ids.Credential) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": calls.Text(partition(w)), "sk": calls.Text(sortKey(id))}
}
