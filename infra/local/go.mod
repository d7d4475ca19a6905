module signalbox.dev/infra/local

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/google/uuid v1.6.0
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/time v0.16.0
)

require github.com/aws/aws-lambda-go v1.55.1

replace signalbox.dev => ../..
