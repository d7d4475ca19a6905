module signalbox.dev/infra/local

go 1.26

require signalbox.dev v0.0.0

require go.yaml.in/yaml/v3 v3.0.6

require (
	github.com/aws/aws-lambda-go v1.55.1 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
)

replace signalbox.dev => ../..
