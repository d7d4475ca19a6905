package byok

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"signalbox.dev/shared/ids"
	"signalbox.dev/shared/seal"
)

// ErrUnreadable says that a stored credential is not of a shape or at a place
// that this service gives to any.
var ErrUnreadable = errors.New("the stored credential is unreadable or misplaced")

const itemVersion = 1

// item is a credential as stored, under pk = workspace#<id>,
// sk = credential#<id>. A list that restricts nothing is stored as NULL, one
// that allows nothing as an empty list.
type item struct {
	PK                  string         `dynamodbav:"pk"`
	SK                  string         `dynamodbav:"sk"`
	Version             int            `dynamodbav:"v"`
	ID                  ids.Credential `dynamodbav:"id"`
	Account             ids.Account    `dynamodbav:"account"`
	Workspace           ids.Workspace  `dynamodbav:"workspace"`
	Provider            string         `dynamodbav:"provider"`
	Name                string         `dynamodbav:"name"`
	Label               string         `dynamodbav:"label"`
	CreatedAt           int64          `dynamodbav:"created_at"` // Unix seconds
	SortOrder           int64          `dynamodbav:"sort_order"`
	Disabled            bool           `dynamodbav:"disabled"`
	BYOKOnly            bool           `dynamodbav:"is_byok_only"`
	Fallback            bool           `dynamodbav:"is_fallback"`
	Required            bool           `dynamodbav:"is_required"`
	AllowedAPIKeyHashes []string       `dynamodbav:"allowed_api_key_hashes"`
	AllowedModels       []string       `dynamodbav:"allowed_models"`
	AllowedUserIDs      []string       `dynamodbav:"allowed_user_ids"`
	Seal                sealItem       `dynamodbav:"seal"`
}

// sealItem is the sealed key; its format is told in package seal.
type sealItem struct {
	Format     int    `dynamodbav:"format"`
	KeyARN     string `dynamodbav:"key_arn"`
	WrappedKey []byte `dynamodbav:"wrapped_key"`
	Nonce      []byte `dynamodbav:"nonce"`
	Ciphertext []byte `dynamodbav:"ciphertext"`
}

func partition(w ids.Workspace) string { return "workspace#" + string(w) }

func sortKey(id ids.Credential) string { return "credential#" + string(id) }

func newItem(d Draft) item {
	return item{
		PK: partition(d.Workspace), SK: sortKey(d.ID), Version: itemVersion,
		ID: d.ID, Account: d.Account, Workspace: d.Workspace,
		Provider: d.Provider, Name: d.Name, Label: d.Label,
		CreatedAt: d.CreatedAt.Unix(), SortOrder: d.SortOrder,
		Disabled: d.Disabled, BYOKOnly: d.BYOKOnly, Fallback: d.Fallback, Required: d.Required,
		AllowedAPIKeyHashes: d.AllowedAPIKeyHashes, AllowedModels: d.AllowedModels, AllowedUserIDs: d.AllowedUserIDs,
		Seal: sealItem(d.sealed),
	}
}

// credential is the stored credential without its key.
func (i item) credential() Credential {
	return Credential{
		Settings: Settings{
			Provider: i.Provider, Name: i.Name,
			AllowedAPIKeyHashes: i.AllowedAPIKeyHashes, AllowedModels: i.AllowedModels, AllowedUserIDs: i.AllowedUserIDs,
			Disabled: i.Disabled, BYOKOnly: i.BYOKOnly, Fallback: i.Fallback, Required: i.Required,
		},
		ID: i.ID, Account: i.Account, Workspace: i.Workspace,
		Label: i.Label, CreatedAt: time.Unix(i.CreatedAt, 0).UTC(), SortOrder: i.SortOrder,
	}
}

// sealed is the sealed key, for the platform's router and for wrapping anew.
func (i item) sealed() seal.Sealed { return seal.Sealed(i.Seal) }

// project asks for these attributes, "." between the parts of a path. Some of
// their names are words of DynamoDB's own, so all of them get another.
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

// queryOf asks for all credentials of the workspace, strongly consistent.
func queryOf(table string, w ids.Workspace) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :credential)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk":         &types.AttributeValueMemberS{Value: partition(w)},
			":credential": &types.AttributeValueMemberS{Value: sortKey("")},
		},
	}
}

func keyOf(w ids.Workspace, id ids.Credential) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: partition(w)},
		"sk": &types.AttributeValueMemberS{Value: sortKey(id)},
	}
}
