// Columns of tables: what they sort by, and how. Pure.

import { compare } from './format.ts';

export interface Column<Row> {
  key: string;
  title: string;
  right?: boolean;
  /** Left out where the page is narrow. */
  wide?: boolean;
  /** What is said of it below the first column, where it was left out. */
  below?: (row: Row) => string | undefined;
  value: (row: Row) => string | number | undefined;
  text?: (row: Row) => string;
}

export interface Order {
  key: string;
  down: boolean;
}

/** `name` or `-name`, as it stands in the address. */
export function readOrder(text: string, fallback: string): Order {
  const said = text || fallback;
  return said.startsWith('-') ? { key: said.slice(1), down: true } : { key: said, down: false };
}

/** The other way where it is this column already; figures begin with the largest. */
export function nextOrder<Row>(order: Order, column: Column<Row>): string {
  const down = order.key === column.key ? !order.down : (column.right ?? false);
  return `${down ? '-' : ''}${column.key}`;
}

/** Sorted by a column; rows without a value come last, equal ones keep their order. */
export function sorted<Row>(rows: Row[], columns: Column<Row>[], order: Order): Row[] {
  const value = columns.find((column) => column.key === order.key)?.value;
  if (!value) return rows;
  const keyed = rows.map((row) => [value(row), row] as const);
  const sign = order.down ? -1 : 1;
  keyed.sort(([a], [b]) => {
    if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
    if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
    return sign * compare(String(a), String(b));
  });
  return keyed.map(([, row]) => row);
}

/** As a file that spreadsheets read (RFC 4180). What begins like a formula is not one. */
export function csv<Row>(rows: Row[], columns: Column<Row>[]): string {
  const cell = (value: string | number | undefined) => {
    const text = String(value ?? '');
    const safe = /^[=+@\t\r\n-]/.test(text) && typeof value !== 'number' ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [columns.map((column) => cell(column.title)), ...rows.map((row) => columns.map((column) => cell(column.value(row))))];
  return lines.map((line) => `${line.join(',')}\r\n`).join('');
}

/** As programs read them: what the columns say of each row; without columns the rows as they are. */
export function json<Row>(rows: Row[], columns?: Column<Row>[]): string {
  const said = columns ? rows.map((row) => Object.fromEntries(columns.map((column) => [column.key, column.value(row)]))) : rows;
  return `${JSON.stringify(said, null, 2)}\n`;
}

/** Columns for all members that any of these documents has; those inside of others as `outer.inner`. */
export function flat<Row extends object>(rows: Row[]): Column<Row>[] {
  const keys = new Set(rows.flatMap((row) => members(row, '')));
  return [...keys].map((key) => ({ key, title: key, value: (row) => plain(key.split('.').reduce<unknown>(inside, row)) }));
}

const isDocument = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

function members(document: object, before: string): string[] {
  return Object.entries(document).flatMap(([key, value]) => (isDocument(value) ? members(value, `${before}${key}.`) : [`${before}${key}`]));
}

function inside(document: unknown, key: string): unknown {
  return isDocument(document) ? document[key] : undefined;
}

function plain(value: unknown): string | number | undefined {
  if (value === undefined || value === null || typeof value === 'number') return value ?? undefined;
  if (Array.isArray(value)) return value.map((one) => (typeof one === 'object' ? JSON.stringify(one) : String(one))).join('; ');
  return String(value);
}
