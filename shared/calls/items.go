package calls

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The parts of a DynamoDB client, beside the SDK's own for pages.
type (
	ItemGetter interface {
		GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	}
	BatchGetter interface {
		BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	}
	ItemPutter interface {
		PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	}
	ItemUpdater interface {
		UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	}
	Transactor interface {
		TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	}
)

// Get reads one item, strongly consistent. It returns nil if there is none, and an error if
// the response is another item. The attributes of the key are strings.
func Get(ctx context.Context, db ItemGetter, table string, key map[string]types.AttributeValue) (map[string]types.AttributeValue, error) {
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item == nil {
		return nil, err
	}
	for name := range key {
		if TextOf(out.Item, name) != TextOf(key, name) {
			return nil, errors.New("the response is another item")
		}
	}
	return out.Item, nil
}

// Decode decodes an item into a zero row, a struct. Of a damaged item it decodes the sound attributes,
// so the row still says whose it is. The error names the first damaged attribute, and quotes no
// value. The decoder accepts a number as a string: in the attributes texts it is damage.
func Decode[T any](item map[string]types.AttributeValue, row *T, texts ...string) (damage error) {
	isNumber := func(name string) bool {
		_, number := item[name].(*types.AttributeValueMemberN)
		return number && slices.Contains(texts, name)
	}
	if !slices.ContainsFunc(texts, isNumber) && attributevalue.UnmarshalMap(item, row) == nil {
		return nil
	}
	var sound T // the decoder leaves parts of a damaged attribute
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(item))) {
		next := sound
		if isNumber(name) || attributevalue.UnmarshalMap(map[string]types.AttributeValue{name: item[name]}, &next) != nil {
			damage = fmt.Errorf("%s is of another type", name)
			continue
		}
		sound = next
	}
	*row = sound
	return damage
}

// TextOf returns the named attribute of an item, or "" if it is no string.
func TextOf(item map[string]types.AttributeValue, name string) string {
	if text, ok := item[name].(*types.AttributeValueMemberS); ok {
		return text.Value
	}
	return ""
}

// IsNewer reports whether an item has a format version above this one: a newer version of this
// service wrote it. Such an item is not damaged.
func IsNewer(item map[string]types.AttributeValue, version int) bool {
	stored, ok := item["v"].(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	v, err := strconv.Atoi(stored.Value)
	return err == nil && v > version
}

// Encode encodes a row: a struct of strings, numbers, booleans, bytes, lists and maps, or
// pointers to them. That cannot fail, and DynamoDB would refuse an empty row.
func Encode(row any) map[string]types.AttributeValue {
	encoded, _ := attributevalue.MarshalMap(row)
	return encoded
}

// Text is a string as DynamoDB's value.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Bool is a boolean as DynamoDB's value.
func Bool(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

// Number is a whole number as DynamoDB's value.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
