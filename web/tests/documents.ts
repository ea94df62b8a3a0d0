// The types of the page held against the schemas of the API's document: what differs, a sentence each. Pure.

import ts from 'typescript';

export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, Schema> | null;
  required?: string[];
  items?: Schema;
  prefixItems?: Schema[];
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  oneOf?: Schema[];
}
export type Schemas = Record<string, Schema>;

const SIZE = 'Size';
type Declared = ts.InterfaceDeclaration | ts.TypeAliasDeclaration;

/** What a source declares, by name. */
export function declared(source: string): Map<string, Declared> {
  const file = ts.createSourceFile('types.ts', source, ts.ScriptTarget.Latest, true);
  const some = file.statements.filter((one): one is Declared => ts.isInterfaceDeclaration(one) || ts.isTypeAliasDeclaration(one));
  return new Map(some.map((one) => [one.name.text, one]));
}

export class Comparison {
  readonly differ: string[] = [];
  /** Members of schemas that the page does not have, by its interface. */
  readonly lacking = new Map<string, string[]>();
  private readonly types: Map<string, Declared>;
  private readonly schemas: Schemas;

  constructor(types: Map<string, Declared>, schemas: Schemas) {
    this.types = types;
    this.schemas = schemas;
  }

  /** An interface, against the schema of a name. */
  compare(name: string, schema: string): void {
    const type = this.types.get(name);
    const found = this.schemas[schema];
    if (!type || !ts.isInterfaceDeclaration(type)) this.differ.push(`${name} is no interface`);
    else if (!found) this.differ.push(`${name}: the document has no ${schema}`);
    else this.members(name, type.members, found);
  }

  private members(at: string, members: ts.NodeArray<ts.TypeElement>, given: Schema): void {
    const schema = this.object(given);
    if (!schema) return void this.differ.push(`${at}: the document has no members there`);
    const named = new Set<string>();
    for (const member of members) {
      if (!ts.isPropertySignature(member) || !member.type) continue;
      const name = member.name.getText();
      named.add(name);
      const of = schema.properties?.[name];
      if (!of) {
        this.differ.push(`${at}.${name}: the document has no such member`);
        continue;
      }
      const isAlways = schema.required?.includes(name) ?? false;
      if (isAlways === (member.questionToken !== undefined)) this.differ.push(`${at}.${name}: it is ${isAlways ? 'always there' : 'not always there'}`);
      this.type(`${at}.${name}`, member.type, of);
    }
    const lacking = Object.keys(schema.properties ?? {}).filter((name) => !named.has(name));
    if (lacking.length) this.lacking.set(at, lacking.sort());
  }

  private type(at: string, type: ts.TypeNode, given: Schema): void {
    const schema = this.resolved(given);
    if (type.kind === ts.SyntaxKind.UnknownKeyword) return;
    if (ts.isTypeReferenceNode(type)) return this.reference(at, type, schema);
    if (ts.isTypeLiteralNode(type)) return this.members(at, type.members, schema);
    if (ts.isArrayTypeNode(type)) return this.array(at, type.elementType, schema);
    if (ts.isTupleTypeNode(type)) {
      const parts = schema.prefixItems ?? [];
      if (parts.length !== type.elements.length) return void this.differ.push(`${at}: the document has ${parts.length} parts`);
      return type.elements.forEach((one, i) => this.type(`${at}[${i}]`, one, parts[i] ?? {}));
    }
    const [own, known] = [kinds(type), this.kinds(schema)];
    // Text may be of words that the page knows all of, and of words that it only shows.
    const isWord = (kind: string) => kind === 'string' || kind.startsWith('"');
    const isText = [...own, ...known].every(isWord) && (own.has('string') || known.has('string'));
    if (!isText && [...own].sort().join() !== [...known].sort().join()) this.differ.push(`${at}: it is ${[...known].sort().join(' or ')}`);
  }

  private reference(at: string, type: ts.TypeReferenceNode, schema: Schema): void {
    const name = type.typeName.getText();
    if (name === 'Record') {
      const below = type.typeArguments?.[1];
      const values = this.resolved(schema).additionalProperties;
      if (!below || typeof values !== 'object') return void this.differ.push(`${at}: the document has no entries by name`);
      return this.type(`${at}[]`, below, values);
    }
    const known = this.types.get(name);
    if (!known) return void this.differ.push(`${at}: nobody knows ${name}`);
    // A form may have a size in another unit, and a document has it in bytes.
    if (name === SIZE && this.kinds(schema).has('number')) return;
    if (ts.isTypeAliasDeclaration(known)) return this.type(at, known.type, schema);
    // Its members are compared with its own schema.
    if (!this.object(schema)) this.differ.push(`${at}: the document has no members there`);
    else this.same(at, known, schema);
  }

  /** Members of an interface that another one has: those it needs are there. */
  private same(at: string, known: ts.InterfaceDeclaration, schema: Schema): void {
    const properties = this.object(schema)?.properties ?? {};
    const gone = known.members.filter((one) => ts.isPropertySignature(one) && !one.questionToken && !(one.name.getText() in properties));
    for (const one of gone) this.differ.push(`${at}: it has no ${one.name?.getText()}, which ${known.name.text} has`);
  }

  private array(at: string, element: ts.TypeNode, schema: Schema): void {
    if (!schema.items) return void this.differ.push(`${at}: it is no list`);
    this.type(`${at}[]`, element, schema.items);
  }

  /** Without references, and without "or nothing". */
  private resolved(schema: Schema): Schema {
    const name = schema.$ref?.split('/').at(-1);
    if (name) return this.resolved(this.schemas[name] ?? {});
    const choices = (schema.anyOf ?? schema.oneOf ?? []).filter((one) => one.type !== 'null');
    return choices.length === 1 && choices[0] && !schema.properties ? this.resolved(choices[0]) : schema;
  }

  private object(schema: Schema): Schema | undefined {
    const found = this.resolved(schema);
    return found.properties ? found : undefined;
  }

  private kinds(given: Schema): Set<string> {
    const schema = this.resolved(given);
    const choices = schema.oneOf ?? schema.anyOf;
    const nothing = (given.anyOf ?? []).some((one) => one.type === 'null') ? ['null'] : [];
    if (choices) return new Set([...choices.flatMap((one) => [...this.kinds(one)]), ...nothing]);
    if (schema.const !== undefined) return new Set([JSON.stringify(schema.const)]);
    if (schema.enum) return new Set(schema.enum.map((one) => JSON.stringify(one)));
    const all = Array.isArray(schema.type) ? schema.type : [schema.type ?? 'anything'];
    return new Set([...all.map((one) => (one === 'integer' ? 'number' : one)), ...nothing]);
  }
}

function kinds(type: ts.TypeNode): Set<string> {
  if (ts.isUnionTypeNode(type)) return new Set(type.types.flatMap((one) => [...kinds(one)]));
  if (ts.isLiteralTypeNode(type)) return new Set([type.literal.kind === ts.SyntaxKind.NullKeyword ? 'null' : `"${type.literal.getText().slice(1, -1)}"`]);
  return new Set([type.getText()]);
}
