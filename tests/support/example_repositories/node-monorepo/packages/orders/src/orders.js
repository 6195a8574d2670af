// What an order is.
exports.isOrder = (text) => {
  try {
    const { product, count } = JSON.parse(text);
    return Number.isInteger(product) && count > 0;
  } catch {
    return false;
  }
};
