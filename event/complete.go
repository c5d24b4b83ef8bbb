package event

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// complete reports an error when an object in b, which has decoded into a P, lacks
// a member. A decoder that fills in zero values for what is missing would read a
// damaged event as an empty one.
func complete[P Payload](b []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(b))
	return walk(dec, reflect.TypeFor[P]())
}

func walk(dec *jsontext.Decoder, t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		if dec.PeekKind() == 'n' {
			return dec.SkipValue()
		}
		t = t.Elem()
	}
	switch {
	case dec.PeekKind() == 'n': // json reads null as the zero value
		return fmt.Errorf("null at %s", dec.StackPointer())
	case t.Kind() == reflect.Struct:
		return walkObject(dec, t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return walkArray(dec, t.Elem())
	}
	return dec.SkipValue()
}

func walkObject(dec *jsontext.Decoder, t reflect.Type) error {
	at := dec.StackPointer()
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	seen := 0
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		field, ok := member(t, name.String())
		if !ok {
			return fmt.Errorf("unknown member %q at %s", name, at)
		}
		seen++
		if err := walk(dec, field); err != nil {
			return err
		}
	}
	if seen != t.NumField() {
		return fmt.Errorf("%d of %d members are missing at %q", t.NumField()-seen, t.NumField(), at)
	}
	_, err := dec.ReadToken()
	return err
}

func walkArray(dec *jsontext.Decoder, t reflect.Type) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if err := walk(dec, t); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

func member(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}
