// What differs between two documents, member by member. Pure.

export interface Differs {
  /** Where it is, as in `limit.iops` or `grant.web:vms:vm01.lun_id`. */
  field: string;
  /** `undefined`: it was not there. */
  before: string | undefined;
  /** `undefined`: it is not there any more. */
  after: string | undefined;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** By which an element of a list is known among others: its name; else its place. */
function keyOf(one: unknown, at: number): string {
  if (typeof one === 'object' && one !== null && 'name' in one && typeof one.name === 'string') return one.name;
  return String(at);
}

function leaves(value: unknown, path: string, into: Map<string, string>): void {
  const within = (key: string) => (path ? `${path}.${key}` : key);
  if (Array.isArray(value) && value.some((one) => typeof one === 'object' && one !== null)) {
    value.forEach((one, at) => leaves(one, within(keyOf(one, at)), into));
  } else if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const [key, one] of Object.entries(value)) leaves(one, within(key), into);
  } else if (value !== undefined && value !== null) {
    into.set(path || 'value', Array.isArray(value) ? value.map(shown).join(', ') : shown(value));
  }
}

/** Members that differ, in the order in which they stand. */
export function diff(before: unknown, after: unknown): Differs[] {
  const [was, is] = [new Map<string, string>(), new Map<string, string>()];
  leaves(before, '', was);
  leaves(after, '', is);
  const fields = [...new Set([...was.keys(), ...is.keys()])];
  return fields.filter((field) => was.get(field) !== is.get(field)).map((field) => ({ field, before: was.get(field), after: is.get(field) }));
}
