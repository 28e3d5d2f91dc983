package lint

import (
	"slices"
	"strings"
)

// leaves warns of statements that change something outside the shard: objects of another schema, and objects of the whole
// database or server. The server decides it when the file runs; see migrate.ErrLeftShard.
func (l *linter) leaves(tree any) {
	fields, _ := tree.(map[string]any)
	for name, body := range fields {
		statement, _ := body.(map[string]any)
		if schema, _ := statement["schemaname"].(string); name == "CreateSchemaStmt" && l.isForeign(schema) {
			return // warned of already
		}
		if schema, _ := statement["schemaname"].(string); name == "CreateSchemaStmt" && slices.Contains(l.opts.Shared, schema) {
			return
		}
		if what, ok := ofServer[name]; ok {
			l.warn(leavesShard, 0, what)
			return
		}
		switch name {
		case "CreateExtensionStmt":
			name, _ := statement["extname"].(string)
			switch {
			case !slices.Contains(l.opts.Extensions, name):
				l.warn(extensionRule, 0, name)
			case statement["if_not_exists"] != true:
				l.warn(extensionTwice, 0, name)
			}
			return
		case "VariableSetStmt":
			if statement["name"] == "search_path" && statement["kind"] == "VAR_SET_VALUE" {
				l.warn(searchPathRule, 0)
			}
			return
		case "DoStmt":
			if len(l.opts.Shared) == 0 {
				l.doBody(statement)
			}
			return
		case "GrantStmt", "CommentStmt", "AlterOwnerStmt", "RenameStmt", "DropStmt":
			if what := l.ofServerType(statement); what != "" {
				l.warn(leavesShard, 0, what)
				return
			}
		case "SelectStmt":
			walk("", statement, 0, func(name string, inner map[string]any, location int) {
				if name == "FuncCall" && lastOf(namesIn(inner["funcname"])) == "set_config" && slices.Contains(textsIn(inner["args"]), "search_path") {
					l.warn(searchPathRule, location)
				}
			})
			if statement["intoClause"] == nil {
				return
			}
		}
		for _, schema := range append(parentSchemas(statement), l.target(name, statement)) {
			if schema != "" && schema != l.opts.Schema && schema != "pg_temp" && !l.isForeign(schema) && !slices.Contains(l.opts.Shared, schema) {
				l.warn(leavesShard, 0, "an object of schema "+schema)
				break
			}
		}
	}
}

// ofServer are statements about the whole database or server.
var ofServer = map[string]string{
	"CreateSchemaStmt": "a schema", "CreateRoleStmt": "a role", "AlterRoleStmt": "a role", "AlterRoleSetStmt": "a role", "DropRoleStmt": "a role",
	"GrantRoleStmt": "a role", "AlterDatabaseStmt": "the database",
	"AlterDatabaseSetStmt": "the database", "CreateEventTrigStmt": "an event trigger", "AlterEventTrigStmt": "an event trigger",
	"CreatePublicationStmt": "a publication", "AlterPublicationStmt": "a publication", "CreateSubscriptionStmt": "a subscription",
	"CreateFdwStmt": "a foreign-data wrapper", "CreateForeignServerStmt": "a foreign server", "CreateUserMappingStmt": "a user mapping",
	"CreatePLangStmt": "a language", "AlterExtensionStmt": "an extension", "ReassignOwnedStmt": "all objects of a role", "DropOwnedStmt": "all objects of a role",
}

// ofServerType returns what a statement on an object of a type concerns if that is in no shard.
func (l *linter) ofServerType(statement map[string]any) string {
	for _, field := range []string{"objtype", "objectType", "renameType", "removeType"} {
		switch text, _ := statement[field].(string); text {
		case "OBJECT_SCHEMA":
			for _, schema := range append(textsIn(statement["objects"]), textsIn(statement["object"])...) {
				if schema != l.opts.Schema && !l.isForeign(schema) && !slices.Contains(l.opts.Shared, schema) {
					return "schema " + schema
				}
			}
		case "OBJECT_DATABASE", "OBJECT_ROLE", "OBJECT_EXTENSION", "OBJECT_EVENT_TRIGGER", "OBJECT_LANGUAGE", "OBJECT_PUBLICATION", "OBJECT_TABLESPACE", "OBJECT_FDW":
			return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(text, "OBJECT_"), "_", " "))
		}
	}
	return ""
}

// target returns the schema of the object that a statement creates or changes, empty for none.
func (l *linter) target(name string, statement map[string]any) string {
	for _, field := range []string{"relation", "view", "sequence", "typevar"} {
		if r, ok := statement[field].(map[string]any); ok && name != "CopyStmt" && name != "RuleStmt" {
			schema, _ := r["schemaname"].(string)
			return schema
		}
	}
	if into, ok := statement["into"].(map[string]any); ok { // CREATE TABLE AS
		return schemaOf(into["rel"])
	}
	if into, ok := statement["intoClause"].(map[string]any); ok {
		return schemaOf(into["rel"])
	}
	for _, field := range []string{"funcname", "typeName", "domainname", "defnames", "opclassname", "opfamilyname"} {
		if name == "CreateDomainStmt" && field == "typeName" {
			continue // it is the type that the domain is of
		}
		if names := textsIn(statement[field]); len(names) > 1 {
			return names[len(names)-2]
		}
	}
	switch statement["removeType"] {
	case "OBJECT_TRIGGER", "OBJECT_RULE", "OBJECT_POLICY":
		return "" // the parts of its name begin with the table's
	}
	for _, field := range []string{"objects", "relations", "func"} {
		objects, ok := statement[field].([]any)
		if !ok {
			objects = []any{statement[field]}
		}
		for _, object := range objects {
			if schema := schemaOfObject(object); schema != "" {
				return schema
			}
		}
	}
	return ""
}

// parentSchemas returns the schemas in the names of the tables that a CREATE TABLE inherits from, or is a partition of: it locks them.
func parentSchemas(statement map[string]any) (schemas []string) {
	parents, _ := statement["inhRelations"].([]any)
	for _, p := range parents {
		parent, _ := p.(map[string]any)
		schemas = append(schemas, schemaOf(parent["RangeVar"]))
	}
	return schemas
}

// schemaOfObject returns the schema in the name of an object, empty if there is none.
func schemaOfObject(object any) string {
	body, _ := object.(map[string]any)
	if _, ok := body["objname"]; ok {
		body = map[string]any{"ObjectWithArgs": body}
	}
	for kind, field := range map[string]string{"List": "items", "ObjectWithArgs": "objname", "TypeName": "names"} {
		if inner, ok := body[kind].(map[string]any); ok {
			if names := textsIn(inner[field]); len(names) > 1 {
				return names[0]
			}
		}
	}
	return schemaOf(body["RangeVar"])
}

func schemaOf(relation any) string {
	r, _ := relation.(map[string]any)
	schema, _ := r["schemaname"].(string)
	return schema
}

// doBody warns of a DO block with words that often lead out of the shard.
func (l *linter) doBody(statement map[string]any) {
	for _, text := range textsIn(statement["args"]) {
		lower := strings.ToLower(text)
		for _, words := range []string{"create role", "create user", "create schema", "create extension", "create event trigger", "alter database", "public."} {
			if strings.Contains(lower, words) {
				l.warn(leavesShard, 0, "what "+strings.TrimSuffix(words, ".")+" names")
				return
			}
		}
	}
}

// textsIn returns the strings of a parse tree, names and constants, in order.
func textsIn(tree any) []string {
	var found []string
	switch t := tree.(type) {
	case []any:
		for _, element := range t {
			found = append(found, textsIn(element)...)
		}
	case map[string]any:
		for key, value := range t {
			if text, ok := value.(string); ok && key == "sval" {
				found = append(found, text)
				continue
			}
			found = append(found, textsIn(value)...)
		}
	}
	return found
}

func lastOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}
