// Columns of tables: what they sort by, and how. Pure.

export interface Column<Row> {
  key: string;
  title: string;
  right?: boolean;
  /** Left out where the page is narrow. */
  wide?: boolean;
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

const words = new Intl.Collator('en', { numeric: true });

/** Sorted by a column; rows without a value come last, equal ones keep their order. */
export function sorted<Row>(rows: Row[], columns: Column<Row>[], order: Order): Row[] {
  const value = columns.find((column) => column.key === order.key)?.value;
  if (!value) return rows;
  const keyed = rows.map((row) => [value(row), row] as const);
  const sign = order.down ? -1 : 1;
  keyed.sort(([a], [b]) => {
    if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
    if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
    return sign * words.compare(String(a), String(b));
  });
  return keyed.map(([, row]) => row);
}

/** As a file that spreadsheets read. What begins like a formula is not one. */
export function csv<Row>(rows: Row[], columns: Column<Row>[]): string {
  const cell = (value: string | number | undefined) => {
    const text = String(value ?? '');
    const safe = /^[=+@\t\r-]/.test(text) && typeof value !== 'number' ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [columns.map((column) => cell(column.title)), ...rows.map((row) => columns.map((column) => cell(column.value(row))))];
  return lines.map((line) => line.join(',')).join('\r\n');
}
