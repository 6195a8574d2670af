from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path

from shop.models import Product


def show_product(request: HttpRequest, number: int) -> JsonResponse:
    return JsonResponse({"name": get_object_or_404(Product, pk=number).name})


urlpatterns = [path("products/<int:number>", show_product)]
