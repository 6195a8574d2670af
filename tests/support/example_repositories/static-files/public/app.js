export function add0(number) {
  return number + 0;
}
export function add1(number) {
  return number + 1;
}
export function add2(number) {
  return number + 2;
}
export function add3(number) {
  return number + 3;
}
export function add4(number) {
  return number + 4;
}
export function add5(number) {
  return number + 5;
}
export function add6(number) {
  return number + 6;
}
export function add7(number) {
  return number + 7;
}
export function add8(number) {
  return number + 8;
}
export function add9(number) {
  return number + 9;
}
export function add10(number) {
  return number + 10;
}
export function add11(number) {
  return number + 11;
}
export function add12(number) {
  return number + 12;
}
export function add13(number) {
  return number + 13;
}
export function add14(number) {
  return number + 14;
}
export function add15(number) {
  return number + 15;
}
export function add16(number) {
  return number + 16;
}
export function add17(number) {
  return number + 17;
}
export function add18(number) {
  return number + 18;
}
export function add19(number) {
  return number + 19;
}
export function add20(number) {
  return number + 20;
}
export function add21(number) {
  return number + 21;
}
export function add22(number) {
  return number + 22;
}
export function add23(number) {
  return number + 23;
}
export function add24(number) {
  return number + 24;
}
export function add25(number) {
  return number + 25;
}
export function add26(number) {
  return number + 26;
}
export function add27(number) {
  return number + 27;
}
export function add28(number) {
  return number + 28;
}
export function add29(number) {
  return number + 29;
}
export function add30(number) {
  return number + 30;
}
export function add31(number) {
  return number + 31;
}
export function add32(number) {
  return number + 32;
}
export function add33(number) {
  return number + 33;
}
export function add34(number) {
  return number + 34;
}
export function add35(number) {
  return number + 35;
}
export function add36(number) {
  return number + 36;
}
export function add37(number) {
  return number + 37;
}
export function add38(number) {
  return number + 38;
}
export function add39(number) {
  return number + 39;
}
