package calls

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Encode encodes a row: a struct of strings, numbers, booleans, bytes, lists and maps, or
// pointers to them. That cannot fail, and DynamoDB would refuse an empty row.
func Encode(row any) map[string]types.AttributeValue {
	encoded, _ := attributevalue.MarshalMap(row)
	return encoded
}

// Text is a string as DynamoDB's value.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Number is a whole number as DynamoDB's value.
func Number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
