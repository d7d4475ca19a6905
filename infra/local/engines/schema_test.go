package engines_test

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func keys(name string) []types.KeySchemaElement {
	return []types.KeySchemaElement{{AttributeName: &name, KeyType: types.KeyTypeHash}}
}

func attributes(name string) []types.AttributeDefinition {
	return []types.AttributeDefinition{{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}}
}
