SELECT '' WHERE false
