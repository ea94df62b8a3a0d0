// What is used of the package, which has no types of its own.
declare module 'subset-font' {
  export default function subset(
    font: Buffer,
    text: string,
    how: { targetFormat: 'woff2'; variationAxes: Record<string, { min: number; max: number }>; keepFeatures: string[] },
  ): Promise<Buffer>;
}
