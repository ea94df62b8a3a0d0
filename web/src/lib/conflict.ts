// Two people changed one object: what it was, what the other made of it, and what I want. Pure.

/** What people set; the rest of a document are counters and facts. */
const FIELDS = [
  'name', 'size', 'bytes_in_flight_max', 'cache', 'integrity', 'read_cache', 'limit.iops', 'limit.bytes_per_second', 'limit.burst_seconds',
  'shares', 'task_aborted_status', 'iqn', 'chap.user', 'chap.mutual_user', 'portal_group', 'redirect.to', 'redirect.permanent',
  'maintenance', 'maintenance_grace_seconds', 'lun_id', 'read_only', 'role', 'enabled', 'severity', 'hold_seconds', 'clear_seconds',
  'least', 'rules', 'group_seconds', 'remind_hours', 'resolved', 'webhook.at', 'mail.server', 'mail.port', 'mail.encryption', 'mail.user',
  'mail.from', 'mail.to', 'command.name',
];
const NOTHING = '–';

export interface Difference {
  field: string;
  before: string;
  theirs: string;
  /** Empty: I leave it as it is. */
  mine: string;
}

function at(document: unknown, field: string): unknown {
  return field.split('.').reduce<unknown>((inside, part) => (typeof inside === 'object' && inside !== null ? (inside as Record<string, unknown>)[part] : undefined), document);
}

function text(value: unknown): string {
  if (value === undefined || value === null || value === '') return NOTHING;
  if (Array.isArray(value)) return value.length ? value.join(', ') : NOTHING;
  // A bound of a rule, which has what it may be beside what it is.
  return typeof value === 'object' && 'value' in value ? String(value.value) : String(value);
}

/** Of `mine`, a part that is named is what I want. */
function named(mine: unknown, field: string): string {
  if (field === 'name' && typeof mine === 'object' && mine !== null && 'to' in mine) return text(mine.to);
  const [group, part] = field.split('.');
  const whole = at(mine, group ?? field);
  if (part !== undefined && whole === null) return NOTHING;
  const value = at(mine, field);
  return value === undefined ? '' : text(value);
}

/** All fields that somebody else changed since, and those that I want to change. */
export function differences(before: unknown, theirs: unknown, mine: unknown): Difference[] {
  const bounds = Object.keys((at(theirs, 'bounds') ?? {}) as object).map((name) => `bounds.${name}`);
  return [...FIELDS, ...bounds].map((field) => ({
    field,
    before: text(at(before, field)),
    theirs: text(at(theirs, field)),
    mine: named(mine, field),
  })).filter((one) => one.before !== one.theirs || one.mine !== '');
}
