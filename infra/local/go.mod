module signalbox.dev/infra/local

go 1.26

require signalbox.dev v0.0.0

require go.yaml.in/yaml/v3 v3.0.6

replace signalbox.dev => ../..
