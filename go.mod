module github.com/reeve-run/reeve

go 1.26.0

require github.com/go-json-experiment/json v1.27.2 // indirect
