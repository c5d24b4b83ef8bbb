package cli

import (
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reeve-run/reeve/fault"
)

// members are the JSON names of a data type, or of its elements.
func members(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// selected keeps the members of --fields of an object or of each object of a list.
func (a *app) selected(data any, encoded jsontext.Value) (jsontext.Value, error) {
	if len(a.set.fields) == 0 {
		return encoded, nil
	}
	rows, list, err := a.pick(data, encoded)
	if err != nil {
		return nil, err
	}
	objects := make([]jsontext.Value, len(rows))
	for i, r := range rows {
		o := make(map[string]jsontext.Value, len(r))
		for k, f := range a.set.fields {
			o[f] = r[k]
		}
		if objects[i], err = json.Marshal(o, json.Deterministic(true)); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "select fields", "")
		}
	}
	if !list {
		return objects[0], nil
	}
	return json.Marshal(objects)
}

// pick returns the values of --fields, a row for each object.
func (a *app) pick(data any, encoded jsontext.Value) (rows [][]jsontext.Value, list bool, err error) {
	have := members(reflect.TypeOf(data))
	for _, f := range a.set.fields {
		if !slices.Contains(have, f) {
			return nil, false, fault.New(fault.Usage, "select fields", f, "no such member; there is %s", strings.Join(have, ", "))
		}
	}
	list = encoded.Kind() == '['
	var objects []map[string]jsontext.Value
	if list {
		err = json.Unmarshal(encoded, &objects)
	} else {
		objects = make([]map[string]jsontext.Value, 1)
		err = json.Unmarshal(encoded, &objects[0])
	}
	if err != nil {
		return nil, false, fault.Wrap(err, fault.Internal, "select fields", "")
	}
	for _, o := range objects {
		row := make([]jsontext.Value, len(a.set.fields))
		for i, f := range a.set.fields {
			row[i] = o[f]
		}
		rows = append(rows, row)
	}
	return rows, list, nil
}

// printFields prints the values of --fields separated by tabs: texts bare, the rest
// as JSON.
func (a *app) printFields(ans answer) error {
	b, err := json.Marshal(ans.data)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "select fields", "")
	}
	rows, _, err := a.pick(ans.data, b)
	if err != nil {
		return err
	}
	p := a.printer()
	for _, r := range rows {
		cells := make([]string, len(r))
		for i, v := range r {
			cells[i] = strings.ReplaceAll(visible(plain(v)), "\t", " ")
		}
		p.line("%s", strings.Join(cells, "\t"))
	}
	return nil
}

// plain is a JSON text as its characters and any other value as its JSON.
func plain(v jsontext.Value) string {
	var s string
	if v.Kind() == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}
